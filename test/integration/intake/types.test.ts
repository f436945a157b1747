/**
 * Slices that the pusher of their shard no longer names: the cache removes them, or holds the
 * removal when it is large.
 */
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { openSender, type SliceSource } from '../../../src/client.js';
import { formatSlice, type Slice } from '../../../src/domain/slice.js';
import type { SliceStatus, StatusReport } from '../../../src/domain/status.js';
import type { PushedObject } from '../../../src/frames/frame.js';
import { LeapingClock } from '../../support/leaping-clock.js';
import { aClusterCachedResource, aPath } from '../../support/objects.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const exports = sliceOf('apiexports');
const schemas = sliceOf('apiresourceschemas');
const many = 120;
/** Links tolerate a silence of this length when the test advances the clock by it. */
const graceMs = 15_000;
const grace = { flags: { 'removal-hold-grace': '15s' } };

function schemasOf(count: number): readonly PushedObject[] {
  return Array.from({ length: count }, (_, i) =>
    pushedObject({ apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIResourceSchema', metadata: { name: `s${i}.acme`, uid: `uid-${i}` } }),
  );
}

async function reported(server: TestServer): Promise<StatusReport['shards']> {
  return (JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport).shards;
}

async function held(server: TestServer, { resource: { resource }, shard }: Slice = schemas): Promise<SliceStatus | undefined> {
  return (await reported(server)).find((each) => each.shard === shard)?.slices.find((slice) => slice.resource === resource);
}

async function objects(server: TestServer, slice: Slice = schemas): Promise<number> {
  return (await held(server, slice))?.objects ?? 0;
}

/** A pusher that has synced both types: one export and `count` schemas. */
async function both(server: TestServer, count: number): Promise<RawPusher> {
  const pusher = await RawPusher.open(server);
  await pusher.sync(exports, [pushedExport('one')]);
  await pusher.sync(schemas, schemasOf(count), 'v1alpha1');
  return pusher;
}

/** Resolves once the cache has decided everything sent before. */
async function settled(pusher: RawPusher): Promise<void> {
  await pusher.acknowledged(pusher.put(exports, [pushedExport('one')]));
}

test('a slice that its pusher no longer names is removed, and everything else stays', async (t) => {
  const server = await aServer(t);
  const birch = await RawPusher.open(server, { name: 'birch' });
  await birch.sync(sliceOf('apiresourceschemas', { shard: 'birch' }), schemasOf(2), 'v1alpha1');
  const first = await both(server, 3);
  first.socket.terminate();

  const second = await RawPusher.open(server, { term: 2_000 });
  await second.sync(exports, [pushedExport('one')]);
  t.is(await objects(server), 3);
  second.types([exports]);
  await settled(second);

  await until(async () => (await objects(server)) === 0);
  t.is(await objects(server, exports), 1);
  t.is(await objects(server, sliceOf('apiresourceschemas', { shard: 'birch' })), 2);
});

test('a slice that is named again is resynced before the cache accepts any of its changes', async (t) => {
  const server = await aServer(t);
  const pusher = await both(server, 3);
  pusher.types([exports]);
  await until(async () => (await objects(server)) === 0);

  pusher.types([exports, schemas]);
  pusher.put(schemas, schemasOf(1), 'v1alpha1');
  const { slice } = await pusher.expect('resync');
  t.deepEqual(slice, schemas);
  await pusher.sync(schemas, schemasOf(2), 'v1alpha1');
  t.is(await objects(server), 2);
});

test('a pusher that was fenced removes nothing by the types that it names', async (t) => {
  const server = await aServer(t);
  const old = await both(server, 3);
  const young = await RawPusher.open(server, { term: 2_000 });
  await young.sync(schemas, schemasOf(3), 'v1alpha1');

  old.types([]);
  t.is(await old.farewell(), 'fenced');
  await young.acknowledged(young.put(schemas, schemasOf(1), 'v1alpha1'));
  t.is(await objects(server), 3);
  t.is(await objects(server, exports), 1);
});

test('a pusher that names no types removes nothing', async (t) => {
  const server = await aServer(t);
  const first = await both(server, 3);
  first.socket.terminate();

  const second = await RawPusher.open(server, { term: 2_000 });
  await second.sync(exports, [pushedExport('one')]);

  t.is(await objects(server), 3);
});

test('many objects of a type that is no longer named are held: they stay, and the slice is neither current nor whole', async (t) => {
  const server = await aServer(t);
  const pusher = await both(server, many);
  await pusher.syncWhole(exports, [pushedExport('one')]);

  pusher.types([exports]);
  await settled(pusher);

  await until(async () => (await held(server))?.held !== null);
  const slice = await held(server);
  t.is(slice?.objects, many);
  t.is(slice?.syncedIn, 'earlier');
  t.false(slice?.whole);
  t.like(slice?.held, { removes: many });
  t.true((slice?.held?.releaseInMs ?? 0) > 3_500_000);
  t.is(await server.metric('strata_slice_held_objects'), many);
});

test('held objects are removed once their grace time is over', async (t) => {
  const clock = new LeapingClock();
  const server = await aServer(t, { ...grace, clock });
  const pusher = await both(server, many);

  pusher.types([exports]);
  await until(async () => (await held(server))?.held !== null);
  t.is(await objects(server), many);
  clock.leap(graceMs);

  await until(async () => (await objects(server)) === 0);
  t.is((await held(server))?.held, null);
  t.is(await server.metric('strata_slice_held_objects'), 0);
});

test('a type that is named again is no longer held, and its objects stay', async (t) => {
  const clock = new LeapingClock();
  const server = await aServer(t, { ...grace, clock });
  const pusher = await both(server, many);
  pusher.types([exports]);
  await until(async () => (await held(server))?.held !== null);

  pusher.types([exports, schemas]);
  await pusher.sync(schemas, schemasOf(many), 'v1alpha1');

  t.is((await held(server))?.held, null);
  clock.leap(graceMs);
  await settled(pusher);
  t.is(await objects(server), many);
  t.is((await held(server))?.syncedIn, 'this-term');
});

test('a restart during the hold removes nothing: the grace time starts over once the pusher is back', async (t) => {
  const clock = new LeapingClock();
  const first = await aServer(t, { ...grace, clock });
  const pusher = await both(first, many);
  pusher.types([exports]);
  await until(async () => (await held(first))?.held !== null);
  const { position } = pusher;

  const second = await first.restart({ ...grace, clock });
  t.teardown(() => second.close());
  clock.leap(graceMs);
  t.is(await objects(second), many);
  t.is((await held(second))?.syncedIn, 'earlier');

  const again = await RawPusher.connect(second);
  again.hello({ position });
  await again.expect('welcome');
  again.types([exports]);
  await until(async () => (await held(second))?.held !== null);
  t.is(await objects(second), many);
  clock.leap(graceMs);
  await until(async () => (await objects(second)) === 0);
});

test('objects whose grace time ended while their pusher was away are removed once it is back', async (t) => {
  const clock = new LeapingClock();
  const server = await aServer(t, { ...grace, clock });
  const pusher = await both(server, many);
  pusher.types([exports]);
  await until(async () => (await held(server))?.held !== null);
  pusher.socket.terminate();
  await until(async () => (await reported(server)).find(({ shard }) => shard === 'amber')?.connection.kind === 'away');
  clock.leap(graceMs);
  await until(async () => (await held(server))?.held === null);
  t.is(await objects(server), many);

  const again = await RawPusher.open(server, { term: 2_000 });
  again.types([exports]);
  await until(async () => (await objects(server)) === 0);
  t.pass();
});

test('a session whose process has reconnected does not remove types that only the new session named', async (t) => {
  const server = await aServer(t);
  const proxy = await TcpProxy.start(server.port);
  t.teardown(() => proxy.close());
  const { certificate, master } = server;
  const first = await RawPusher.open({ url: `https://127.0.0.1:${proxy.port}`, certificate, master });
  await first.sync(exports, [pushedExport('one')]);
  await first.sync(schemas, schemasOf(many), 'v1alpha1');
  first.types([exports]);
  await until(async () => (await held(server))?.held !== null);
  const { term: named, position } = first;
  // The first connection is half open until the server stops waiting for its close.
  proxy.blackhole();

  const endpoints = sliceOf('apiexportendpointslices');
  const endpoint = { apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIExportEndpointSlice', metadata: { name: 'one', uid: 'u' } };
  const second = await RawPusher.connect(server);
  second.hello({ named, position });
  await second.expect('welcome');
  second.types([exports, endpoints]);
  await second.sync(endpoints, [pushedObject(endpoint)], 'v1alpha1');
  t.is((await server.client().raw('DELETE', '/services/cache/shards/amber/held/apiresourceschemas.apis.kcp.io')).status, 200);

  await until(async () => (await objects(server)) === 0);
  await settled(second);
  t.is(await objects(server, endpoints), 1);
});

/** A source that sends these objects and then stays silent. */
function aSource(version: string, ...all: readonly PushedObject[]): SliceSource {
  return {
    connected: true,
    open: async function* (signal) {
      const puts = all.map((object) => ({ kind: 'put', version, object }) as const);
      yield [{ kind: 'begin', revision: '7' }, ...puts, { kind: 'end', revision: '7' }];
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
  };
}

test('a confirmed removal spares objects that were pushed after the pusher last listed all its slices', async (t) => {
  const server = await aServer(t);
  const first = await both(server, many);
  first.socket.terminate();
  const stopping = new AbortController();
  t.teardown(() => stopping.abort());
  const { certificate, key } = server.master;
  const identity = { ca: server.certificate, certificate, key };
  const sender = openSender({ shard: 'amber', caches: [server.url], identity, agent: 'test 1' });
  sender.add(exports, aSource('v1alpha2', pushedExport('one')));
  sender.complete(true);
  void sender.run(stopping.signal);
  await until(async () => (await held(server))?.held !== null);

  sender.complete(false);
  const endpoints = sliceOf('apiexportendpointslices');
  const endpoint = { apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIExportEndpointSlice', metadata: { name: 'one', uid: 'u' } };
  sender.add(endpoints, aSource('v1alpha1', pushedObject(endpoint)));
  await until(async () => (await objects(server, endpoints)) === 1);
  t.is(
    (await server.client().raw('DELETE', '/services/cache/shards/amber/held/apiresourceschemas.apis.kcp.io')).status,
    404,
    'the hold has ended',
  );
  await new Promise((resolve) => setTimeout(resolve, 500));

  t.is(await objects(server, endpoints), 1);
});

largeTest('a pusher with more slices than fit into a frame names all of them', async (t) => {
  t.timeout(180_000);
  const server = await aServer(t);
  const first = await both(server, 3);
  first.socket.terminate();
  const stopping = new AbortController();
  const { certificate, key } = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const identity = { certificate, key, ca: server.certificate };
  const sender = openSender({ shard: 'amber', caches: [server.url], identity, agent: 'test 1' });
  for (let i = 0; i < 10_001; i += 1)
    sender.add({ ...exports, resource: { ...exports.resource, identity: `hash-${i}` } }, aSource('v1alpha2'));
  sender.add(exports, aSource('v1alpha2', pushedExport('two')));
  sender.complete(true);
  const ended = sender.run(stopping.signal);
  t.teardown(async () => {
    stopping.abort();
    await ended;
  });

  const names = async () => (await server.client().list(aPath())).items.map(({ metadata }) => metadata.name);
  await until(async () => (await objects(server)) === 0, 170_000);
  await until(async () => (await names()).includes('two'), 170_000);
  t.pass();
});

test('a pusher that reconnects gets the list of all slices it has synced, however many', async (t) => {
  const server = await aServer(t);
  const count = 1_100;
  const types = Array.from({ length: count }, (_, i) => sliceOf('instances', { group: 'machines.svm.io', identity: `hash${i}` }));
  const declared = types.map(({ resource: { identity } }) => {
    const object = aClusterCachedResource(identity, { version: 'v1alpha1' });
    return pushedObject(
      { ...object, metadata: Object.assign({}, object['metadata'], { name: 'instances', uid: identity }) },
      `of-${identity}`,
    );
  });
  const first = await RawPusher.open(server);
  const declaring = sliceOf('clustercachedresources', { group: 'cache.kcp.io' });
  first.begin(declaring);
  for (let at = 0; at < count; at += 100) first.put(declaring, declared.slice(at, at + 100), 'v1alpha1');
  await first.acknowledged(first.end(declaring, count));
  for (let at = 0; at < count; at += 500) {
    const ends = types.slice(at, at + 500).map((type) => [first.begin(type), first.end(type, 0)]);
    await first.acknowledged(Math.max(...ends.flat()));
  }
  first.socket.terminate();

  const second = await RawPusher.connect(server);
  second.hello({ position: first.position });
  await second.expect('welcome');

  t.is(new Set(second.synced.map(formatSlice)).size, count + 1);
  t.is(second.synced.length, count + 1);
});

test('names sent in parts remove nothing before the last part', async (t) => {
  const server = await aServer(t);
  const first = await both(server, 3);
  first.socket.terminate();
  const pusher = await RawPusher.open(server, { term: 2_000 });
  await pusher.sync(exports, [pushedExport('one')]);

  pusher.socket.send({ kind: 'types', slices: [exports], withdrawn: [], isAll: false });
  await settled(pusher);
  t.is(await objects(server), 3);
  pusher.socket.send({ kind: 'types', slices: [], withdrawn: [], isAll: true });

  await until(async () => (await objects(server)) === 0);
  t.is(await objects(server, exports), 1);
});

test('slices that a pusher withdraws while it may name more stay until it has named all', async (t) => {
  const server = await aServer(t);
  const pusher = await both(server, 3);
  pusher.types([exports, schemas]);

  pusher.socket.send({ kind: 'types', slices: [], withdrawn: [schemas], isAll: false });
  await settled(pusher);
  t.is(await objects(server), 3);
  pusher.socket.send({ kind: 'types', slices: [], withdrawn: [], isAll: true });

  await until(async () => (await objects(server)) === 0);
  t.is(await objects(server, exports), 1);
});

test('a hold ends when its pusher says that it may name more, and the next hold has its own grace time', async (t) => {
  const clock = new LeapingClock();
  const server = await aServer(t, { ...grace, clock });
  const pusher = await both(server, many);
  pusher.types([exports]);
  await until(async () => (await held(server))?.held !== null);

  pusher.socket.send({ kind: 'types', slices: [], withdrawn: [], isAll: false });
  await until(async () => (await held(server))?.held === null);
  clock.leap(graceMs);
  pusher.socket.send({ kind: 'types', slices: [], withdrawn: [], isAll: true });
  await settled(pusher);

  await until(async () => (await held(server))?.held !== null);
  t.is(await objects(server), many);
});

test('a slice that begins is no longer held, though it was not named', async (t) => {
  const clock = new LeapingClock();
  const server = await aServer(t, { ...grace, clock });
  const pusher = await both(server, many);
  pusher.types([exports]);
  await until(async () => (await held(server))?.held !== null);

  await pusher.sync(schemas, schemasOf(many), 'v1alpha1');
  t.is((await held(server))?.held, null);
  clock.leap(graceMs);
  await settled(pusher);
  t.is(await objects(server), many);
});

test('more names than a connection may sync end the session', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);
  for (let at = 0; at <= 50_000; at += 1_000) {
    const slices = Array.from({ length: 1_000 }, (_, i) => sliceOf('widgets', { identity: `hash${at + i}` }));
    pusher.socket.send({ kind: 'types', slices, withdrawn: [], isAll: false });
  }

  const { reason, message } = await pusher.expect('bye');
  t.is(reason, 'protocol');
  t.regex(message, /50000/);
});
