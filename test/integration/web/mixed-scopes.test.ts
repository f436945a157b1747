/**
 * One resource under two identities, namespaced under one and cluster-scoped under the other (as
 * kcp-dev/kcp#4037 met it). And informers of a type that all start while it is being declared.
 */
import { setMaxListeners } from 'node:events';
import { test } from '../../support/test.js';
import type { KubeClient, KubeObject } from '../../support/kube-client.js';
import { aClusterCachedResource, aPath } from '../../support/objects.js';
import { aServer, until } from '../../support/test-server.js';

const partial = { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' };
const partialList = { accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' };
const everywhere = { cluster: '*', shard: '*' };

function instances(place: { cluster?: string; shard?: string; identity?: string; name?: string; namespace?: string } = {}): string {
  return aPath({ group: 'machines.svm.io', resource: 'instances', version: 'v1', ...place });
}

function declarations(): string {
  return aPath({ group: 'cache.kcp.io', resource: 'clustercachedresources', version: 'v1alpha1' });
}

function anInstance(name: string, metadata: Record<string, unknown> = {}): Record<string, unknown> {
  return { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name, ...metadata }, spec: {} };
}

function placeOf({ metadata: { namespace = '', name = '' } }: KubeObject): string {
  return `${namespace}/${name}`;
}

async function status(client: KubeClient, method: string, path: string, body?: unknown): Promise<number> {
  return (await client.raw(method, path, body === undefined ? {} : { body })).status;
}

test('a resource that is namespaced under one identity and cluster-scoped under another is never confused with the other', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(declarations(), aClusterCachedResource('spaced', { scope: 'Namespaced' }));
  await client.create(declarations(), aClusterCachedResource('flat', { name: 'other' }));
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { type, object } of client.watch(`${instances(everywhere)}?watch=true`, { headers: partial }))
      seen.push(`${type} ${placeOf(object)}`);
  })();
  watching.catch(() => {});

  await client.create(instances({ identity: 'spaced', namespace: 'team' }), anInstance('one'));
  await client.create(instances({ identity: 'flat' }), anInstance('one'));
  await client.create(instances({ identity: 'flat' }), anInstance('team'));

  t.is(await status(client, 'POST', instances({ identity: 'flat', namespace: 'team' }), anInstance('two')), 404);
  t.is(await status(client, 'POST', instances({ identity: 'spaced' }), anInstance('two')), 404);
  t.is(await status(client, 'GET', instances({ identity: 'flat', namespace: 'team', name: 'one' })), 404);
  t.is(await status(client, 'GET', instances({ identity: 'spaced', name: 'one' })), 404);
  t.deepEqual((await client.list(instances({ ...everywhere, identity: 'spaced' }))).items.map(placeOf), ['team/one']);
  t.deepEqual((await client.list(instances({ ...everywhere, identity: 'flat' }))).items.map(placeOf), ['/one', '/team']);
  const both = await client.list(instances(everywhere), { headers: partialList });
  t.deepEqual(both.items.map(placeOf).toSorted(), ['/one', '/team', 'team/one']);

  t.is(await status(client, 'DELETE', instances({ identity: 'spaced', namespace: 'team' })), 200);
  await until(() => seen.includes('DELETED team/one'));

  t.deepEqual(seen, ['ADDED team/one', 'ADDED /one', 'ADDED /team', 'DELETED team/one']);
  t.deepEqual((await client.list(instances({ ...everywhere, identity: 'flat' }))).items.map(placeOf), ['/one', '/team']);
});

test('informers that start while their type is being declared all end up with its objects', async (t) => {
  const server = await aServer(t);
  const writer = server.client();
  const wanted = Array.from({ length: 40 }, (_, i) => `/i-${i}`);
  const path = instances({ ...everywhere, identity: 'hash' });
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  t.teardown(() => stop.abort());

  /** Lists, then watches; starts again when the type is unknown or has ended. */
  async function informer(isWatchList: boolean): Promise<readonly string[]> {
    const client = server.client({});
    const held = new Set<string>();
    for (;;) {
      const listed = isWatchList ? undefined : await client.raw('GET', path);
      if (listed !== undefined && listed.status !== 200) continue;
      const list =
        listed === undefined ? undefined : (JSON.parse(listed.text) as { items: KubeObject[]; metadata: { resourceVersion: string } });
      held.clear();
      for (const each of list?.items ?? []) held.add(placeOf(each));
      const start: Record<string, string> =
        list === undefined
          ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' }
          : { resourceVersion: list.metadata.resourceVersion };
      try {
        if (held.size === wanted.length) return [...held];
        for await (const { type, object } of client.watch(path, { query: start, signal: stop.signal })) {
          if (type === 'ERROR') break;
          if (type === 'BOOKMARK') continue;
          if (type === 'DELETED') held.delete(placeOf(object));
          else held.add(placeOf(object));
          if (held.size === wanted.length) return [...held];
        }
      } catch (error) {
        if (stop.signal.aborted) throw error;
      }
    }
  }

  const informers = Array.from({ length: 12 }, (_, i) => informer(i % 2 === 0));
  await writer.create(declarations(), aClusterCachedResource('hash'));
  await Promise.all(wanted.map((each) => writer.create(instances({ identity: 'hash' }), anInstance(each.slice(1)))));

  for (const held of await Promise.all(informers)) t.deepEqual(held.toSorted(), wanted.toSorted());
  t.is((await writer.list(path)).items.length, wanted.length);
});
