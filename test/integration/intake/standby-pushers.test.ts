/**
 * Two pushers of one shard and the real server: the second waits, gets the shard within a second
 * after the first has left, and nobody is fenced.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { aServer, quickened, until, type TestServer } from '../../support/test-server.js';
import { aTree, exportsOf } from '../../support/test-tree.js';

const exports = sliceOf('apiexports');
/** How much faster time passes for the caches of a tree. */
const factor = 5;

async function amberAt(server: TestServer): Promise<StatusReport['shards'][number] | undefined> {
  const { shards } = JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
  return shards.find(({ shard }) => shard === 'amber');
}

/** A process that connects for the first time and has not been answered yet. */
async function aNewcomer(server: TestServer, process: string, { takesOver = false } = {}): Promise<RawPusher> {
  const pusher = await RawPusher.connect(server);
  pusher.hello({ named: 0, process, takesOver });
  return pusher;
}

test('a second pusher of a shard waits until the first has left, and is then welcomed at once', async (t) => {
  const server = await aServer(t);
  const first = await aNewcomer(server, 'first');
  await first.expect('welcome');
  await first.syncWhole(exports, [pushedExport('one')]);
  const second = await aNewcomer(server, 'second');
  t.is((await second.next()).kind, 'standby');
  t.is((await amberAt(server))?.standbys, 1);
  await first.acknowledged(first.put(exports, [pushedExport('two')]));

  first.socket.terminate();
  const goneMs = performance.now();
  const welcome = await second.expect('welcome');
  const waitedMs = performance.now() - goneMs;

  t.log(`welcomed ${Math.round(waitedMs)} ms after the first was gone`);
  t.true(waitedMs < 5_000);
  t.true(welcome.term > first.term);
  t.like(await amberAt(server), { standbys: 0, term: welcome.term, connection: { kind: 'connected' } });
  await second.sync(exports, [pushedExport('two'), pushedExport('three')]);
  t.is((await exportsOf(server)).join(), 'three,two');
  const back = await RawPusher.connect(server);
  back.hello({ process: 'first', named: first.term });
  t.is(await back.farewell(), 'fenced', 'another process has replaced it');
});

test('a pusher that takes over does not wait for the current one', async (t) => {
  const server = await aServer(t);
  const first = await aNewcomer(server, 'first');
  await first.expect('welcome');

  const second = await aNewcomer(server, 'second', { takesOver: true });

  t.is((await second.next()).kind, 'welcome');
  t.is(await first.farewell(), 'fenced');
});

test('a process that missed its welcome waits only for its own old connection', async (t) => {
  const server = await aServer(t);
  const first = await aNewcomer(server, 'first');
  const { term } = await first.expect('welcome');

  const again = await aNewcomer(server, 'first');

  t.is((await again.expect('welcome')).term, term);
  t.is(await first.farewell(), 'replaced');
});

test('a process that missed its welcome does not wait for a standby', async (t) => {
  const server = await aServer(t);
  const first = await aNewcomer(server, 'first');
  const { term } = await first.expect('welcome');
  const second = await aNewcomer(server, 'second');
  await second.expect('standby');

  const again = await aNewcomer(server, 'first');

  t.is((await again.next()).kind, 'welcome');
  t.is(again.term, term);
  t.is(await first.farewell(), 'replaced');
  t.is((await amberAt(server))?.standbys, 1);
});

test('a pusher that reconnects after a restart of the cache gets its shard, though another connected before it', async (t) => {
  const server = await aServer(t);
  const first = await aNewcomer(server, 'first');
  await first.expect('welcome');
  await first.sync(exports, [pushedExport('one')]);
  const restarted = await server.restart();
  t.teardown(() => restarted.close());

  const second = await aNewcomer(restarted, 'second');
  t.is((await second.next()).kind, 'standby');
  const back = await RawPusher.connect(restarted);
  back.hello({ process: 'first', named: first.term, position: first.position });

  await back.expect('welcome');
  t.deepEqual(back.synced, [exports]);
  t.is((await amberAt(restarted))?.standbys, 1);
});

test('the removal of a shard also fences its standbys; a later pusher gets the shard', async (t) => {
  const server = await aServer(t);
  const first = await aNewcomer(server, 'first');
  await first.expect('welcome');
  const second = await aNewcomer(server, 'second');
  await second.expect('standby');

  t.is((await server.client().raw('DELETE', '/services/cache/shards/amber')).status, 200);

  t.is(await first.farewell(), 'fenced');
  t.is(await second.farewell(), 'fenced');
  const third = await aNewcomer(server, 'third');
  t.is((await third.next()).kind, 'welcome');
});

test('a standby at another cache gets the shard once its pusher has left; a pusher that then moves there is not fenced', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  const first = await aNewcomer(east, 'first');
  await first.expect('welcome');
  await first.syncWhole(exports, [pushedExport('one')]);
  await until(async () => (await amberAt(root))?.connection.kind === 'connected');
  const second = await aNewcomer(root, 'second');
  t.is((await second.next()).kind, 'standby');

  first.socket.terminate();
  const goneMs = performance.now();
  const { term } = await second.expect('welcome');
  t.log(`welcomed ${Math.round(performance.now() - goneMs)} ms after the first was gone`);
  await second.syncWhole(exports, [pushedExport('two')]);

  await until(async () => (await exportsOf(east)).join() === 'two');
  const moved = await RawPusher.connect(east);
  moved.hello({ process: 'second', named: term });
  t.true((await moved.expect('welcome')).term > term, 'the shard is there now');
  t.is(await second.farewell(), 'replaced');
});

const sourceless = { slice: exports, connected: false, synced: true, lagMs: 0, whole: false };

for (const [what, { accept = "[{shards: ['*']}]", before = async () => {}, after = () => {} }] of Object.entries<{
  accept?: string;
  before?: (holder: RawPusher) => Promise<void>;
  after?: (holder: RawPusher, proxy: TcpProxy) => void;
}>({
  'has no slices yet': {},
  'has lost its source': {
    before: (holder) => holder.syncWhole(exports, [pushedExport('one')]),
    after: (holder) => holder.socket.send({ kind: 'status', freshness: [sourceless], withdrawn: [] }),
  },
  'has nothing that crosses the link': {
    accept: "[{shards: ['*'], types: ['apiresourceschemas.apis.kcp.io']}]",
    before: (holder) => holder.syncWhole(exports, [pushedExport('one')]),
  },
  'is behind a link that is slow to answer': {
    before: (holder) => holder.syncWhole(exports, [pushedExport('one')]),
    after: (_, proxy) => proxy.stall(),
  },
}))
  test(`a standby at another cache continues to wait for a pusher that ${what}`, async (t) => {
    const tree = await aTree(t);
    const clock = quickened(factor);
    const root = await tree.cache('root', { clock, config: `children: {'*': {accept: ${accept}, offer: []}}\n` });
    const proxy = await TcpProxy.start(root.port);
    t.teardown(() => proxy.close());
    const east = await tree.cache('east', { clock, parent: root, urls: [`https://127.0.0.1:${proxy.port}`] });
    const holder = await aNewcomer(east, 'first');
    await holder.expect('welcome');
    await before(holder);
    await until(async () => (await amberAt(root))?.term === holder.term);
    // Time for the reports of links to arrive.
    await sleep(2_000 / factor);

    const second = await aNewcomer(root, 'second');
    t.is((await second.next()).kind, 'standby');
    after(holder, proxy);
    await sleep(5_000 / factor);

    t.like(await amberAt(root), { standbys: 1, term: holder.term });
    proxy.heal();
    holder.socket.terminate();
    t.true((await second.expect('welcome')).term > holder.term);
  });

test('the removal of a shard fences a process that missed its welcome, and a new process brings the shard back', async (t) => {
  const server = await aServer(t);
  const first = await aNewcomer(server, 'first');
  await first.expect('welcome');
  first.socket.terminate();
  t.is((await server.client().raw('DELETE', '/services/cache/shards/amber')).status, 200);

  const again = await aNewcomer(server, 'first');
  t.is(await again.farewell(), 'fenced');

  const next = await aNewcomer(server, 'next');
  t.is((await next.next()).kind, 'welcome');
});
