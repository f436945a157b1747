/**
 * An operator makes caches forget children that are gone, over real websockets and both versions of
 * HTTP; they must stay forgotten after a restart.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { StatusReport } from '../../../src/domain/status.js';
import type { KubeStatus } from '../../support/kube-client.js';
import { shardName } from '../../support/objects.js';
import { claim, greetingChild, openChild as openRawChild } from '../../support/raw-child.js';
import { pushedExport, type RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const config = `children: {'*': {accept: [{shards: ['*']}]}}\n`;
const amber = shardName('amber');
const exportsPath = (shard = '*'): string => `/services/cache/shards/${shard}/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports`;

async function statusOf(server: TestServer): Promise<StatusReport> {
  return JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
}

async function childrenOf(server: TestServer): Promise<readonly string[]> {
  return ((await statusOf(server)).tree?.children ?? []).map(({ name, connection }) => `${name} ${connection.kind}`);
}

async function shardsOf(server: TestServer): Promise<readonly string[]> {
  return (await statusOf(server)).shards.map(({ shard, via, removed }) => `${shard} ${removed ? 'removed' : (via ?? 'nobody')}`);
}

async function names(server: TestServer): Promise<readonly (string | undefined)[]> {
  return (await server.client().list(exportsPath())).items.map(({ metadata }) => metadata.name);
}

type End = (path: string, as?: Parameters<TestServer['client']>[0]) => Promise<string>;

/** Sends a DELETE to the server; returns the answer, or the reason of a refusal. */
function ending(server: TestServer, http2 = false): End {
  return async (path, as = {}) => {
    const { status, text } = await server.client({ http2, ...as }).raw('DELETE', `/services/cache/${path}`);
    const { reason, message } = JSON.parse(text) as KubeStatus;
    return status === 200 ? text : `${status} ${reason}: ${message}`;
  };
}

async function restarted(t: ExecutionContext, server: TestServer): Promise<TestServer> {
  const again = await server.restart({ config });
  t.teardown(() => again.close());
  return again;
}

async function leave(server: TestServer, child: RawPusher, name: string): Promise<void> {
  child.socket.terminate();
  await until(async () => (await childrenOf(server)).includes(`${name} away`));
}

/**
 * Terminates the socket at the end of the test, because a socket that is not read to its end never
 * sees the close.
 */
async function openChild(t: ExecutionContext, server: TestServer, name = 'east', id?: string): Promise<RawPusher> {
  const child = await openRawChild(server, name, id);
  t.teardown(() => child.socket.terminate());
  return child;
}

async function bringsOne(child: RawPusher, shard = amber): Promise<void> {
  claim(child, shard);
  await child.acknowledged(child.put(sliceOf('apiexports', { shard }), [pushedExport(`of-${shard}`)]));
}

for (const http2 of [false, true]) {
  const http = http2 ? 'HTTP/2' : 'HTTP/1.1';

  test(`a master forgets a child that is gone: its objects stay served without a via, and its id is free, over ${http}`, async (t) => {
    const server = await aServer(t, { config });
    const child = await openChild(t, server, 'east', 'id-1');
    await bringsOne(child);
    const end = ending(server, http2);
    const east = server.authority.issue({ user: 'east', groups: ['strata'], uris: ['strata://cache/east'] });

    t.is(await end('caches/east'), '409 Conflict: the cache east is connected: only a disconnected cache can be forgotten');
    t.is(await end('caches/west'), '404 NotFound: cache "west" not found');
    t.regex(await end('caches/east', { as: east }), /^403 Forbidden: /);
    await leave(server, child, 'east');
    t.is(await end('caches/east'), '{"cache":"east","shards":1}');

    t.is(await end('caches/east'), '404 NotFound: cache "east" not found');
    t.notRegex((await server.client().raw('GET', '/metrics')).text, /child\/east/);
    const again = await restarted(t, server);
    t.deepEqual([await childrenOf(again), await shardsOf(again), await names(again)], [[], ['amber nobody'], ['of-amber']]);
    await openChild(t, again, 'north', 'id-1');
    claim(await openChild(t, again, 'east', 'another-disk'), amber);
    await until(async () => (await shardsOf(again))[0] === 'amber child/east');
    t.deepEqual(await childrenOf(again), ['east connected', 'north connected']);
    t.deepEqual(await names(again), ['of-amber']);
  });
}

test('an id that another child used first is its owner’s again once that other child is forgotten', async (t) => {
  const server = await aServer(t, { config });
  const squatter = await openChild(t, server, 'east', 'id-of-west');
  const west = await greetingChild(server, 'west');
  await t.throwsAsync(west.expect('welcome'), {
    message: 'bye forbidden: the cache id that you sent is already the id of east: check whether a disk was copied',
  });

  await leave(server, squatter, 'east');
  await ending(server)('caches/east');
  await openChild(t, server, 'west');

  t.deepEqual(await childrenOf(server), ['west connected']);
});
