/**
 * Which DELETED events a cache sends for keys that a neighbour has swept, over the wire: only for
 * objects that it may have had and does not have.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { PushedKey } from '../../../src/frames/frame.js';
import { shardName } from '../../support/objects.js';
import { claim, openChild } from '../../support/raw-child.js';
import { pushedExport, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until } from '../../support/test-server.js';

const roles = sliceOf('roles', { group: 'rbac.authorization.k8s.io' });
const birches = sliceOf('apiexports', { shard: 'birch' });
const path = '/services/cache/shards/amber/clusters/acme/apis/rbac.authorization.k8s.io/v1';

/**
 * A cache in which a plain writer has created one Role, a child to which `offer` is offered, and
 * the DELETED events of a watch.
 */
async function aWatchedCache(t: ExecutionContext, { offer }: { offer: string }) {
  const server = await aServer(t, { config: `children: {'*': {accept: [{shards: [birch]}], offer: ${offer}}}\n` });
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'one', namespace: 'team' } };
  const { status, text } = await server.client().raw('POST', `${path}/namespaces/team/roles`, { body: JSON.stringify(role) });
  t.is(status, 201);
  const { resourceVersion } = (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata;
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const heard: string[] = [];
  const watch = server.client().watch(`${path}/roles`, { query: { resourceVersion, watch: 'true' }, signal: stop.signal });
  const read = async (): Promise<void> => {
    for await (const { type, object } of watch)
      if (type === 'DELETED') heard.push(`${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`);
  };
  void read().catch(() => {});

  const child = await openChild(server);
  claim(child, shardName('birch'));
  const swept = async (...keys: readonly PushedKey[]): Promise<readonly string[]> => {
    child.socket.send({ kind: 'swept', slice: roles, keys });
    // The server handles frames in order, so the acknowledgement also covers the `swept`.
    child.begin(birches);
    child.put(birches, [pushedExport('b')]);
    await child.acknowledged(child.end(birches, 1, 'e'));
    await new Promise((resolve) => setTimeout(resolve, 200));
    return heard;
  };
  return { swept, heard };
}

test('watches get DELETED for a swept key that does not exist here, and not for one that does', async (t) => {
  const { swept, heard } = await aWatchedCache(t, { offer: "[{types: ['*']}]" });

  await swept({ cluster: 'acme', namespace: 'team', name: 'one' }, { cluster: 'acme', namespace: 'team', name: 'lost' });

  await until(async () => heard.length > 0);
  t.deepEqual(heard, ['team/lost']);
});

test('watches get nothing for a key that no object can have, because an informer could take it for another object', async (t) => {
  const { swept } = await aWatchedCache(t, { offer: "[{types: ['*']}]" });

  const heard = await swept(
    { cluster: 'acme', namespace: '', name: 'team/one' },
    { cluster: 'acme', namespace: 'team', name: 'x/one' },
    { cluster: 'acme', namespace: 'team/x', name: 'one' },
    { cluster: 'acme', namespace: '', name: 'one' },
    { cluster: 'acme', namespace: 'team', name: '' },
    { cluster: 'acme', namespace: 'team', name: 'n'.repeat(2_000) },
  );

  t.deepEqual(heard, []);
});

test('watches get nothing from a child to which no object of that type is offered', async (t) => {
  const { swept } = await aWatchedCache(t, { offer: "[{types: ['apiexports.apis.kcp.io']}]" });

  t.deepEqual(await swept({ cluster: 'acme', namespace: 'team', name: 'lost' }), []);
});
