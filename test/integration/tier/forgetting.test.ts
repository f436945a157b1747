/**
 * An operator makes caches forget children and shards that are gone, over real websockets and both
 * versions of HTTP; they must stay forgotten after a restart.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { StatusReport } from '../../../src/domain/status.js';
import type { KubeStatus } from '../../support/kube-client.js';
import { shardName } from '../../support/objects.js';
import { claim, greetingChild, openChild as openRawChild } from '../../support/raw-child.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aTree } from '../../support/test-tree.js';

const config = `children: {'*': {accept: [{shards: ['*']}]}}\n`;
const exports = sliceOf('apiexports');
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

async function openPusher(t: ExecutionContext, server: TestServer): Promise<RawPusher> {
  const pusher = await RawPusher.open(server, { term: 1_000 });
  t.teardown(() => pusher.socket.terminate());
  return pusher;
}

/** Reports that the child has sent everything that it has. */
function sendAll(child: RawPusher): void {
  child.numbered((sequence) => ({ kind: 'report', sequence, freshness: [], heartbeat: 0, isAll: true, isComplete: true }));
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

  test(`a master forgets a shard only once it is removed and empty, over ${http}`, async (t) => {
    const server = await aServer(t, { config });
    const pusher = await openPusher(t, server);
    await pusher.sync(exports, [pushedExport('one')]);
    const end = ending(server, http2);
    const shard = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });

    t.is(
      await end('shards/amber/record'),
      '409 Conflict: the shard amber cannot be forgotten: it was not removed; first run strata shards remove amber',
    );
    t.is(await end('shards/birch/record'), '404 NotFound: shard "birch" not found');
    t.is(await end('shards/amber'), '{"shard":"amber","objectsRemoved":1}');
    t.regex(await end('shards/amber/record', { as: shard }), /^403 Forbidden: /);
    t.is(await end('shards/amber/record'), '{"shard":"amber"}');

    t.is(await end('shards/amber/record'), '404 NotFound: shard "amber" not found');
    t.deepEqual(await shardsOf(server), []);
    const again = await restarted(t, server);
    t.deepEqual(await shardsOf(again), []);
    // No fence keeps its old process out any more.
    await (await openPusher(t, again)).sync(exports, [pushedExport('two')]);
    t.deepEqual(await names(again), ['two']);
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

test('a shard that a neighbour claims, or may claim once it is back, is not forgotten', async (t) => {
  const server = await aServer(t, { config });
  const end = ending(server);
  const refused = '409 Conflict: the shard amber cannot be forgotten: ';
  const east = await openChild(t, server);
  await bringsOne(east);
  await end('shards/amber');

  t.is(await end('shards/amber/record'), `${refused}the cache east claims it, and would bring it back`);
  claim(east, amber, Date.now() + 60_000, true);
  await east.acknowledged(east.begin(exports));
  const away = 'the cache east is away, or has not sent all that it has; wait until it is back, or forget that cache first';
  t.is(await end('shards/amber/record'), `${refused}${away}`);
  await leave(server, east, 'east');
  t.is(await end('shards/amber/record'), `${refused}${away}`);
  const again = await openChild(t, server);
  const received = await again.expect('claim');
  sendAll(again);
  await again.acknowledged(again.begin(exports));
  t.is(await end('shards/amber/record'), `${refused}the cache east has not confirmed the removal yet`);
  again.socket.send({ ...received, path: ['id-of-east'], isYours: false });
  await again.acknowledged(again.begin(exports));
  t.is(await end('shards/amber/record'), '{"shard":"amber"}');

  claim(again, amber, 3_000, true);
  await until(async () => (await shardsOf(server)).includes('amber removed'));
  await leave(server, again, 'east');
  t.is(await end('shards/amber/record'), `${refused}${away}`);
  await end('caches/east');
  t.is(await end('shards/amber/record'), '{"shard":"amber"}');
  t.deepEqual(await shardsOf(server), []);
});

test('if a neighbour remembers a removal that was forgotten here, an old process is fenced, and a plain writer keeps its writes', async (t) => {
  const server = await aServer(t, { config });
  const end = ending(server);
  const east = await openChild(t, server);
  for (const shard of ['amber', 'birch'].map(shardName)) claim(east, shard, 3_000, true);
  sendAll(east);
  await until(async () => (await shardsOf(server)).length === 2);
  await end('shards/amber/record');
  await end('shards/birch/record');
  t.deepEqual(await shardsOf(server), []);

  const old = await RawPusher.connect(server);
  t.teardown(() => old.socket.terminate());
  old.hello({ term: 2_000 });
  t.is(await old.farewell(), 'fenced');
  await until(async () => (await shardsOf(server)).includes('amber removed'));
  const body = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'written' } };
  await server.client().create(exportsPath('birch'), body);
  await until(async () => (await statusOf(server)).shards.some(({ shard, via }) => shard === 'birch' && via === 'local'));
  for (;;) {
    const received = await east.expect('claim');
    if (received.shard === 'birch' && !received.removed && received.term > 3_000) break;
  }
  claim(east, shardName('birch'), 3_000, true);
  await east.acknowledged(east.begin(exports));

  t.deepEqual(await names(server), ['written']);
});

test('once all caches of a tree have forgotten a shard, none knows it, even after a restart', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const leaf = await tree.cache('leaf', { parent: root });
  const pusher = await openPusher(t, leaf);
  await pusher.sync(exports, [pushedExport('one')]);
  await until(async () => (await names(root)).length === 1);
  t.regex(await ending(root)('shards/amber/record'), /it was not removed/);

  await ending(root)('shards/amber');
  await until(async () => (await shardsOf(leaf)).includes('amber removed') && (await names(leaf)).length === 0);
  for (const server of [root, leaf]) await until(async () => (await ending(server)('shards/amber/record')) === '{"shard":"amber"}');

  const again = await leaf.restart({ flags: await tree.linkFlags('leaf', root), config: 'parent: {forward: [{types: ["*"]}]}\n' });
  t.teardown(() => again.close());
  await until(async () => (await statusOf(again)).tree?.hops === 1 && (await childrenOf(root)).includes('leaf connected'));
  await until(async () => (await statusOf(root)).tree?.children[0]?.policies.other !== null);
  t.deepEqual([await shardsOf(root), await shardsOf(again)], [[], []]);
  t.is((await statusOf(root)).tree?.children[0]?.receiving.claims, 0);
});
