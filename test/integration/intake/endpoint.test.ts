/**
 * Pushers and the real server, over TLS: who may connect, what happens to their frames, and what
 * clients see of it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { LeapingClock } from '../../support/leaping-clock.js';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { parseClusterName, type ClusterName } from '../../../src/domain/cluster.js';
import type { Clock } from '../../../src/domain/ports.js';
import type { FrameOf } from '../../../src/frames/frame.js';
import { UpgradeRefused } from '../../../src/frames/upgrade-refused.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { aClusterCachedResource, aPath } from '../../support/objects.js';
import { aProcess } from '../../support/pushes.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { TestAuthority } from '../../support/test-authority.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const exports = sliceOf('apiexports');
const everywhere = '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';

async function amberCertificate(server: TestServer) {
  return server.authority.issue({ user: 'amber-agent', groups: ['strata'], uris: ['strata://shard/amber'] });
}

async function names(server: TestServer): Promise<readonly string[]> {
  const { items } = await server.client().list(everywhere);
  return items.map(({ metadata }) => `${metadata.annotations?.['kcp.io/shard']} ${metadata.name}`).toSorted();
}

async function revision(server: TestServer): Promise<string | undefined> {
  return (await server.client().list(everywhere)).metadata.resourceVersion;
}

async function status(server: TestServer): Promise<StatusReport> {
  return JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
}

async function refusedWith(t: ExecutionContext, connecting: Promise<unknown>): Promise<number | undefined> {
  const error = await t.throwsAsync(connecting, { instanceOf: UpgradeRefused });
  return error?.httpCode;
}

test('what a shard syncs and sends is listed, and is removed when the shard deletes it', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server, { as: await amberCertificate(server) });

  await pusher.sync(exports, [pushedExport('one'), pushedExport('two')]);
  t.deepEqual(await names(server), ['amber one', 'amber two']);
  await pusher.acknowledged(pusher.delete(exports, ['one', 'absent']));
  t.deepEqual(await names(server), ['amber two']);
  const [object] = (await server.client().list(everywhere)).items;
  t.like(object?.metadata, { uid: 'uid-of-two', annotations: { 'kcp.io/shard': 'amber', 'kcp.io/cluster': 'acme' } });
});

test('a sync of existing objects causes no revision and no event; objects that it omits are deleted once, and only at its end', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);
  await pusher.sync(exports, [pushedExport('one'), pushedExport('two'), pushedExport('three')]);
  const before = await revision(server);
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const events = server.client().watch(everywhere, { query: { watch: 'true', resourceVersion: before ?? '' }, signal: stop.signal });

  await pusher.sync(exports, [pushedExport('three'), { ...pushedExport('two'), body: undefined }, pushedExport('one')]);
  t.is(await revision(server), before);
  pusher.begin(exports);
  await pusher.acknowledged(pusher.put(exports, [pushedExport('two'), pushedExport('one', { spec: { changed: true } })]));
  t.deepEqual(await names(server), ['amber one', 'amber three', 'amber two']);
  await pusher.acknowledged(pusher.end(exports, 2));
  t.deepEqual(await names(server), ['amber one', 'amber two']);

  const seen = [(await events.next()).value, (await events.next()).value];
  t.deepEqual(
    seen.map((event) => `${event?.type} ${event?.object.metadata.name}`),
    ['MODIFIED one', 'DELETED three'],
  );
});

test('a sync of one logical cluster deletes what it omits there and nothing else; one that breaks off deletes nothing', async (t) => {
  const server = await aServer(t);
  const clusters = ['a', 'a-1', 'a0', 'aa', 'b'];
  const first = await RawPusher.open(server, { term: 1 });
  const all = clusters.flatMap((cluster) => ['one', 'two'].map((name) => pushedExport(`${cluster}-${name}`, { cluster })));
  await first.sync(exports, all);
  const cluster = parseClusterName('a')!;

  first.numbered((sequence) => ({ kind: 'clusterBegin', sequence, slice: exports, cluster }));
  first.put(exports, [pushedExport('a-one', { cluster: 'a' }), pushedExport('b-one', { cluster: 'b', spec: { changed: true } })]);
  const ended = first.numbered((sequence) => ({ kind: 'clusterEnd', sequence, slice: exports, cluster, count: 1 }));
  await first.acknowledged(ended);

  const rest = clusters.slice(1).flatMap((each) => [`amber ${each}-one`, `amber ${each}-two`]);
  t.deepEqual(await names(server), ['amber a-one', ...rest].toSorted());

  await first.acknowledged(first.numbered((sequence) => ({ kind: 'clusterBegin', sequence, slice: exports, cluster })));
  first.socket.terminate();
  const second = await RawPusher.connect(server);
  second.hello({ term: 1, named: 1, position: first.position });
  await second.expect('welcome');
  t.is(second.synced.length, 1, 'the slice counts as synced; its pusher knows better');
  second.numbered((sequence) => ({ kind: 'clusterEnd', sequence, slice: exports, cluster, count: 0 }));
  t.is((await second.expect('resync')).slice.resource.resource, 'apiexports');
  t.deepEqual(await names(server), ['amber a-one', ...rest].toSorted());
});

test('the name of no logical cluster, or an object of another shard, ends the session', async (t) => {
  for (const [slice, cluster, reason] of [
    [exports, 'root:org', 'protocol'],
    [exports, '', 'protocol'],
    [exports, 'x'.repeat(300), 'protocol'],
    [sliceOf('apiexports', { shard: 'birch' }), 'acme', 'forbidden'],
  ] as const) {
    const server = await aServer(t);
    const pusher = await RawPusher.open(server, { as: await amberCertificate(server) });
    await pusher.sync(exports, [pushedExport('one')]);

    pusher.numbered((sequence) => ({ kind: 'clusterBegin', sequence, slice, cluster: cluster as ClusterName }));

    t.is((await pusher.expect('bye')).reason, reason, cluster);
    t.deepEqual(await names(server), ['amber one']);
  }
});

test('a sync that breaks off removes nothing', async (t) => {
  const server = await aServer(t);
  const first = await RawPusher.open(server, { term: 1 });
  await first.sync(exports, [pushedExport('one'), pushedExport('two')]);
  first.begin(exports);
  await first.acknowledged(first.put(exports, [pushedExport('one')]));
  first.socket.terminate();

  const second = await RawPusher.connect(server);
  second.hello({ term: 1 });
  await second.expect('welcome');

  t.deepEqual(second.synced, [], 'the slice must be resynced');
  t.deepEqual(await names(server), ['amber one', 'amber two']);
});

test('a process that reconnects continues at its position; a new process syncs everything', async (t) => {
  const server = await aServer(t);
  const first = await RawPusher.open(server, { term: 5 });
  await first.sync(exports, [pushedExport('one')]);
  first.socket.terminate();

  const same = await RawPusher.connect(server);
  same.hello({ term: 5, position: first.position });
  await same.expect('welcome');
  t.deepEqual(same.synced, [exports]);
  await same.acknowledged(same.put(exports, [pushedExport('two')]));
  const next = await RawPusher.connect(server);
  next.hello({ term: 8 });
  await next.expect('welcome');
  t.deepEqual(next.synced, []);
  t.deepEqual(await names(server), ['amber one', 'amber two']);
});

test('of two processes of one shard the later one gets it: the older one is fenced, stays out and changes nothing', async (t) => {
  const server = await aServer(t);
  const older = await RawPusher.open(server, { term: 5 });
  await older.sync(exports, [pushedExport('one')]);

  const later = await RawPusher.open(server, { term: 8 });
  t.is(await older.farewell(), 'fenced');
  const again = await RawPusher.connect(server);
  again.hello({ term: 5 });
  t.is(await again.farewell(), 'fenced');
  await later.sync(exports, [pushedExport('two')]);
  t.deepEqual(await names(server), ['amber two']);
});

test('a process that connects again replaces its own connection', async (t) => {
  const server = await aServer(t);
  const before = await RawPusher.open(server, { term: 5 });

  const after = await RawPusher.open(server, { term: 5 });

  t.is(await before.farewell(), 'replaced');
  await after.sync(exports, [pushedExport('one')]);
  t.deepEqual(await names(server), ['amber one']);
});

test('a certificate admits its own shard and no other, and writes no objects of another', async (t) => {
  const server = await aServer(t);
  const birch = await RawPusher.open(server, { name: 'birch' });
  const birchExports = sliceOf('apiexports', { shard: 'birch' });
  await birch.sync(birchExports, [pushedExport('theirs')]);
  const as = await amberCertificate(server);

  const asBirch = await RawPusher.connect(server, as);
  asBirch.hello({ name: 'birch' });
  t.is(await asBirch.farewell(), 'forbidden');
  const amber = await RawPusher.open(server, { as });
  amber.delete(birchExports, ['theirs']);
  t.is(await amber.farewell(), 'forbidden');
  const hostile = await RawPusher.open(server, { as });
  hostile.begin(exports);
  const last = hostile.put(exports, [
    pushedExport('a', { cluster: 'root:org' }),
    pushedExport('b', { cluster: 'system:admin' }),
    pushedExport('c', { metadata: { name: 'c', uid: 'u', annotations: { 'kcp.io/shard': 'birch' } } }),
    pushedExport('good'),
  ]);
  const refusals = (await hostile.acknowledged(last)).map((frame) => frame.kind === 'refuse' && frame.reason);
  t.deepEqual(refusals, ['BadRequest', 'Forbidden', 'Forbidden']);

  t.deepEqual(await names(server), ['amber good', 'birch theirs']);
  t.true((await server.metric('strata_refusals_total')) >= 5);
  const logged = server.logged.filter(({ event }) => event === 'push.refused');
  t.is(logged.length, 3);
  t.notRegex(JSON.stringify(logged), /uid-of|apiVersion/, 'no bodies in logs');
  const sent = await server.client({ as }).raw('POST', aPath({ shard: 'birch' }), { body: pushedExport('x') });
  t.is(sent.status, 403);
});

test('a client with no certificate, an expired one, one of another authority, or one that names nobody gets no websocket', async (t) => {
  const server = await aServer(t);
  const folder = await mkdtemp(join(tmpdir(), 'strata-stranger-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const stranger = new TestAuthority(folder);
  const uris = ['strata://shard/amber'];

  const expired = server.authority.issue({ user: 'old', groups: ['strata'], uris, validityDays: -1 });
  const foreign = stranger.issue({ user: 'foreign', groups: ['strata'], uris });
  const nobody = server.authority.issue({ user: 'amber', groups: ['strata'] });
  const grouped = server.authority.issue({ user: 'amber', groups: ['others'], uris });

  for (const as of [expired, foreign, nobody, grouped]) t.is(await refusedWith(t, RawPusher.connect(server, as)), 403);
  t.is(server.logged.filter(({ event }) => event === 'push.upgrade-refused').length, 4);
});

test('a session ends when its certificate expires', async (t) => {
  const dayMs = 86_400_000;
  /** This clock's timers of more than a day fire at once. */
  const clock: Clock = {
    now: () => systemClock.now(),
    wallMs: () => systemClock.wallMs(),
    after: (ms, task) => systemClock.after(ms > dayMs ? 300 : ms, task),
  };
  const server = await aServer(t, { clock });

  const pusher = await RawPusher.connect(server, await amberCertificate(server));
  pusher.hello();

  t.is(await pusher.farewell(), 'forbidden');
});

test('a page in a browser cannot push in its user’s name, nor anybody in another’s, and no other path is upgraded', async (t) => {
  const server = await aServer(t);
  const upgrade = async (path: string, headers: Record<string, string>): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const { master, certificate } = server;
      const asked = request(`${server.url}${path}`, {
        ca: certificate,
        cert: master.certificate,
        key: master.key,
        headers: {
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
          'sec-websocket-protocol': 'strata.v1',
          ...headers,
        },
      });
      asked.once('upgrade', (response, socket) => (socket.destroy(), resolve(response.statusCode)));
      asked.once('response', (response) => (response.resume(), resolve(response.statusCode)));
      asked.once('error', reject);
      asked.end();
    });

  t.is(await upgrade('/services/cache/connect', {}), 101);
  t.is(await upgrade('/services/cache/connect', { origin: 'https://evil.example' }), 403);
  // These must answer 400, because a client takes 404 to mean that the object does not exist.
  const other = ['/services/cache/other', '/readyz', '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports?watch=true'];
  for (const path of other)
    for (const protocol of ['websocket', 'h2c', 'TLS/1.0']) t.is(await upgrade(path, { upgrade: protocol }), 400, path);
  t.is(await upgrade('/services/cache/connect', { expect: '200-maybe' }), 417);
  t.is(await upgrade('/services/cache/connect', { 'impersonate-user': 'nobody' }), 403);
  t.is(await upgrade('/services/cache/connect', { 'impersonate-group': 'strata' }), 400);
  t.is(await upgrade('/services/cache/connect', { 'sec-websocket-protocol': 'chat' }), 400);
});

/**
 * A session that has not said hello counts too. It must not time out while a busy machine opens the
 * others.
 */
const withoutHaste = { 'hello-timeout': '5m' };

test('sessions are bounded in total and per caller, and one that ends makes room', async (t) => {
  const flags = { 'push-sessions-max': '3', 'link-children-max': '1', 'push-sessions-per-caller-max': '2', ...withoutHaste };
  const server = await aServer(t, { flags });
  const as = await amberCertificate(server);
  const first = await RawPusher.connect(server, as);
  await RawPusher.connect(server, as);
  await until(async () => (await server.metric('strata_push_sessions')) === 2);

  t.is(await refusedWith(t, RawPusher.connect(server, as)), 503);
  await RawPusher.connect(server);
  await until(async () => (await server.metric('strata_push_sessions')) === 3);
  t.is(await refusedWith(t, RawPusher.connect(server)), 503);
  first.socket.close('shutdown', 'bye');
  await until(async () => (await server.metric('strata_push_sessions')) === 2);
  await t.notThrowsAsync(RawPusher.open(server, { as }));
});

test('children do not keep pushers out, nor pushers children; a caller that may be either is refused after its hello', async (t) => {
  const server = await aServer(t, { flags: { 'push-sessions-max': '1', 'link-children-max': '1', ...withoutHaste } });
  const ofChild = (name: string) => server.authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] });
  const asChild = (name: string): FrameOf<'hello'> => ({
    kind: 'hello',
    protocol: 1,
    role: 'cache',
    name,
    process: '',
    term: 1,
    takesOver: false,
    route: [`id-of-${name}`],
    agent: 'raw',
    credit: { mutations: 100, bytes: 1_000_000 },
    limits: { frameBytesMax: 1_000_000, frameMutationsMax: 100, bodyBytesMax: 100_000 },
  });
  const as = await amberCertificate(server);

  await RawPusher.open(server, { as });
  t.is(await refusedWith(t, RawPusher.connect(server, as)), 503);
  const either = await RawPusher.connect(server);
  either.socket.send(asChild('north'));
  await either.expect('welcome');
  t.is(await refusedWith(t, RawPusher.connect(server, ofChild('east'))), 503);
  t.is(await refusedWith(t, RawPusher.connect(server)), 503);
  either.socket.close('shutdown', 'bye');

  const second = await eventually(() => RawPusher.connect(server));
  second.hello({ name: 'birch' });
  t.is(await second.farewell(), 'unavailable');
  const east = await eventually(async () => RawPusher.connect(server, ofChild('east')));
  east.socket.send(asChild('east'));
  await t.notThrowsAsync(east.expect('welcome'));
});

/** Retries until the server has room. */
async function eventually<T>(connect: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await connect();
    } catch (error) {
      if (!(error instanceof UpgradeRefused)) throw error;
    }
  }
}

test('a peer that does not say hello in time, or sends another frame or junk, is disconnected, and others are not affected', async (t) => {
  const server = await aServer(t, { flags: { 'hello-timeout': '2s' } });
  const good = await RawPusher.open(server, { name: 'birch' });
  const silent = await RawPusher.connect(server);
  const early = await RawPusher.connect(server);
  early.begin(exports);

  t.is(await early.farewell(), 'protocol');
  t.is(await silent.farewell(), 'timeout');
  const birchExports = sliceOf('apiexports', { shard: 'birch' });
  await good.sync(birchExports, [pushedExport('one')]);
  t.deepEqual(await names(server), ['birch one']);
});

test('the log has the close code and the reason for which a pusher left', async (t) => {
  const server = await aServer(t);
  const stopped = await RawPusher.open(server);
  const broken = await RawPusher.open(server, { name: 'birch' });
  const fieldsOf = (shard: string): Readonly<Record<string, unknown>> | undefined =>
    server.logged
      .filter(({ event }) => event === 'push.disconnected')
      .map(({ fields }) => fields as Readonly<Record<string, unknown>>)
      .find((fields) => fields['shard'] === shard);

  stopped.socket.close('timeout', 'nothing was acknowledged for too long');
  broken.socket.terminate();
  await until(() => fieldsOf('amber') !== undefined && fieldsOf('birch') !== undefined);

  t.like(fieldsOf('amber'), { code: 4008, reason: 'timeout' });
  t.like(fieldsOf('birch'), { code: 1006, reason: undefined });
});

test('a gap in the frame numbers ends the session, nothing after the gap is applied, and the next session continues', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);
  await pusher.sync(exports, [pushedExport('one'), pushedExport('two')]);
  pusher.skip(3);

  pusher.delete(exports, ['one']);

  t.is(await pusher.farewell(), 'protocol');
  t.deepEqual(await names(server), ['amber one', 'amber two'], 'the delete after the gap is not applied');
  const next = await RawPusher.open(server);
  await next.sync(exports, [pushedExport('two')]);
  t.deepEqual(await names(server), ['amber two']);
});

test('a session may declare a type with its own pushes, and the type ends with its declaration', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);
  const declaring = sliceOf('clustercachedresources', { group: 'cache.kcp.io' });
  const declared = sliceOf('instances', { group: 'machines.svm.io', identity: 'hash' });
  const declaration = aClusterCachedResource('hash') as { metadata: Record<string, unknown> };
  const instance = { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name: 'i1', uid: 'u' }, spec: {} };

  pusher.begin(declaring);
  pusher.put(declaring, [pushedObject({ ...declaration, metadata: { ...declaration.metadata, uid: 'ccr' } })], 'v1alpha1');
  pusher.end(declaring, 1);
  await pusher.sync(declared, [pushedObject(instance)], 'v1');
  const path = '/services/cache/shards/*/clusters/*/apis/machines.svm.io/v1/instances:hash';
  t.is((await server.client().list(path)).items.length, 1);
  await pusher.acknowledged(pusher.delete(declaring, ['instances']));
  await until(async () => (await server.client().raw('GET', path)).status === 404);
  const refused = await pusher.acknowledged(pusher.put(declared, [pushedObject(instance)], 'v1'));
  t.like(refused, [{ kind: 'refuse', reason: 'NotFound' }]);
});

test('once a type is declared again, its pusher is asked at once to resync, though it has nothing to send', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);
  const declaring = sliceOf('clustercachedresources', { group: 'cache.kcp.io' });
  const declared = sliceOf('instances', { group: 'machines.svm.io', identity: 'hash' });
  const { metadata, ...rest } = aClusterCachedResource('hash') as { metadata: Record<string, unknown> };
  const declaration = pushedObject({ ...rest, metadata: { ...metadata, uid: 'ccr' } });
  const instance = pushedObject({ apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name: 'i1', uid: 'u' }, spec: {} });
  await pusher.sync(declaring, [declaration], 'v1alpha1');
  await pusher.sync(declared, [instance], 'v1');
  const path = '/services/cache/shards/*/clusters/*/apis/machines.svm.io/v1/instances:hash';
  await pusher.acknowledged(pusher.delete(declaring, ['instances']));
  await until(async () => server.logged.some(({ event }) => event === 'type.removed'));

  pusher.put(declaring, [declaration], 'v1alpha1');

  t.deepEqual((await pusher.expect('resync')).slice, declared);
  await pusher.sync(declared, [instance], 'v1');
  t.is((await server.client().list(path)).items.length, 1);
});

test('keys and members that JavaScript treats specially are kept like all others', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);
  const text = `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"one","uid":"u","labels":{"constructor":"prototype"}},"spec":{"__proto__":{"x":1},"constructor":{"prototype":9007199254740993}}}`;

  await pusher.sync(exports, [{ ...pushedExport('one'), body: new TextEncoder().encode(text) }]);

  const { text: read } = await server.client().raw('GET', aPath({ name: 'one' }));
  t.true(read.includes('"spec":{"__proto__":{"x":1},"constructor":{"prototype":9007199254740993}}'));
  t.is(({} as Record<string, unknown>)['x'], undefined);
});

test('status and metrics show the freshness of each type of each shard', async (t) => {
  const server = await aServer(t);
  await server.client().raw('POST', aPath({ shard: 'birch' }), { body: JSON.parse(new TextDecoder().decode(pushedExport('theirs').body)) });
  const pusher = await RawPusher.open(server, { term: 77 });
  await pusher.sync(exports, [pushedExport('one'), pushedExport('two')]);
  pusher.socket.send({
    kind: 'status',
    freshness: [{ slice: exports, connected: true, synced: true, lagMs: 3, whole: true }],
    withdrawn: [],
  });
  await until(async () => (await status(server)).shards[0]?.slices[0]?.lagMs === 3);

  const { shards } = await status(server);

  t.like(shards[0], { shard: 'amber', term: 77, removed: false, connection: { kind: 'connected' } });
  t.like(shards[0]?.slices[0], { resource: 'apiexports', everSynced: true, syncedIn: 'this-term', objects: 2, sourceConnected: true });
  t.like(shards[1], { shard: 'birch', connection: { kind: 'plain' } });
  t.is(await server.metric('strata_slice_objects'), 3);
  t.is(await server.metric('strata_shard_connected'), 1);
  pusher.socket.terminate();
  await until(async () => (await status(server)).shards[0]?.connection.kind === 'away');
});

test('nobody else writes to a slice that a pusher owns: what the cache calls whole is what the shard has', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  const pusher = await RawPusher.open(server);
  await pusher.syncWhole(exports, [pushedExport('one')]);
  const { term, position } = pusher;

  for (const [method, path, options] of [
    ['DELETE', aPath({ name: 'one' }), {}],
    ['POST', aPath(), { body: JSON.parse(new TextDecoder().decode(pushedExport('two').body)) as unknown }],
  ] as const) {
    const { status: code, text } = await client.raw(method, path, options);
    t.is(code, 409, method);
    t.regex(text, /the shard amber has a pusher: change the object on the shard/);
  }
  const kcp = server.client({ as: await amberCertificate(server) });
  t.is(
    (await kcp.raw('POST', aPath(), { body: JSON.parse(new TextDecoder().decode(pushedExport('by-kcp').body)) as unknown })).status,
    201,
  );
  t.deepEqual(await names(server), ['amber by-kcp', 'amber one']);
  t.true((await status(server)).shards[0]?.slices[0]?.whole, 'kcp beside its agent reports what the shard has');
  pusher.socket.terminate();
  await until(async () => (await status(server)).shards[0]?.connection.kind === 'away');
  t.is((await client.raw('DELETE', aPath({ name: 'one' }))).status, 200);

  const again = await RawPusher.open(server, { named: term, process: aProcess(1_000), position });
  t.deepEqual(again.synced, []);
  await again.syncWhole(exports, [pushedExport('one')]);
  t.deepEqual(await names(server), ['amber one']);
  t.true((await status(server)).shards[0]?.slices[0]?.whole);
});

test('a pusher whose source is away still owns its shard: nobody else writes, not even during its sync', async (t) => {
  const clock = new LeapingClock();
  const server = await aServer(t, { clock });
  const pusher = await RawPusher.open(server);
  pusher.socket.send({
    kind: 'status',
    freshness: [{ slice: exports, connected: false, synced: false, lagMs: 0, whole: false }],
    withdrawn: [],
  });
  pusher.begin(exports);
  await pusher.acknowledged(pusher.put(exports, [pushedExport('one')]));
  // After this time a standby may get the shard.
  clock.leap(10_600);

  t.is((await server.client().raw('DELETE', aPath({ name: 'one' }))).status, 409);
  await pusher.acknowledged(pusher.end(exports, 1));
  t.deepEqual(await names(server), ['amber one']);
});

test('a dry run of a write that would be refused is refused', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  const pusher = await RawPusher.open(server);
  await pusher.syncWhole(exports, [pushedExport('one')]);
  const body = JSON.parse(new TextDecoder().decode(pushedExport('two').body)) as unknown;

  t.is((await client.raw('POST', `${aPath()}?dryRun=All`, { body })).status, 409);
  t.is((await client.raw('DELETE', `${aPath({ name: 'one' })}?dryRun=All`)).status, 409);
  const kcp = server.client({ as: await amberCertificate(server) });
  t.is((await kcp.raw('POST', `${aPath()}?dryRun=All`, { body })).status, 201);
  t.deepEqual(await names(server), ['amber one']);
});

test('a pusher that resumes beside plain writes learns what to sync again, and the slice is whole in the end', async (t) => {
  const server = await aServer(t);
  const client = server.client({ http2: true });
  const objects = Array.from({ length: 30 }, (_, i) => pushedExport(`o-${i}`));
  for (let round = 0; round < 12; round += 1) {
    const first = await RawPusher.open(server, { named: 0, process: 'one' });
    await first.syncWhole(exports, objects);
    const { position, term } = first;
    first.socket.terminate();
    await until(async () => (await status(server)).shards[0]?.connection.kind === 'away');
    const second = await RawPusher.connect(server);
    const deleting = objects.map(async ({ name }, i) => {
      await new Promise((resolve) => setTimeout(resolve, i / 3));
      return client.raw('DELETE', aPath({ name }));
    });
    await new Promise((resolve) => setTimeout(resolve, round));
    second.hello({ named: term, process: 'one', position });
    const welcomed = second.expect('welcome').then(
      () => true,
      () => false,
    );
    await Promise.all(deleting);
    if (!(await welcomed)) continue;
    const isWhole = (await status(server)).shards[0]?.slices[0]?.syncedIn === 'this-term';
    const isSynced = second.synced.length > 0;
    // Either no object was lost, or the pusher must learn that it has to sync.
    if (isSynced && !isWhole) t.is((await second.expect('resync')).slice.resource.resource, 'apiexports', `round ${round}`);
    t.is(isWhole, (await names(server)).length === 30, `round ${round}`);
    second.socket.terminate();
    await until(async () => (await status(server)).shards[0]?.connection.kind === 'away');
  }
});

test('a removed shard sends one DELETED per object, its old process stays out, and a new process brings it back', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  const pusher = await RawPusher.open(server, { term: 5 });
  const many = Array.from({ length: 600 }, (_, i) => pushedExport(`n${i}`));
  pusher.begin(exports);
  for (let i = 0; i < many.length; i += 100) pusher.put(exports, many.slice(i, i + 100));
  await pusher.acknowledged(pusher.end(exports, many.length));
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const events = client.watch(everywhere, {
    query: { watch: 'true', resourceVersion: (await revision(server)) ?? '' },
    signal: stop.signal,
  });

  const { status: code, text } = await client.raw('DELETE', '/services/cache/shards/amber');
  t.is(code, 200);
  t.deepEqual(JSON.parse(text), { shard: 'amber', objectsRemoved: 600 });
  const gone = new Set<string | undefined>();
  for (let i = 0; i < 600; i += 1) {
    const { value } = await events.next();
    t.is(value?.type, 'DELETED');
    gone.add(value?.object.metadata.name);
  }
  t.is(gone.size, 600);
  t.is(await pusher.farewell(), 'fenced');
  const old = await RawPusher.connect(server);
  old.hello({ term: 5 });
  t.is(await old.farewell(), 'fenced');
  t.is((await client.raw('DELETE', '/services/cache/shards/cedar')).status, 404);

  const restarted = await server.restart();
  t.teardown(() => restarted.close());
  t.true((await status(restarted)).shards.find(({ shard }) => shard === 'amber')?.removed);
  const back = await RawPusher.open(restarted, { term: Date.now() + 1_000 });
  await back.sync(exports, [pushedExport('one')]);
  t.deepEqual(await names(restarted), ['amber one']);
});

test('a pusher whose acknowledged position the cache does not know syncs everything; until then nothing counts as synced', async (t) => {
  const server = await aServer(t);
  const first = await RawPusher.open(server, { term: 5 });
  await first.sync(exports, [pushedExport('one')]);
  first.socket.terminate();
  const lost = String(BigInt(first.position!) + 1n);

  for (const position of [lost, undefined, '', 'x', '0', '1', `0${first.position}`]) {
    const again = await RawPusher.connect(server);
    again.hello({ term: 5, position });
    await again.expect('welcome');
    t.deepEqual(again.synced, [], String(position));
    const amber = (await status(server)).shards.find(({ shard }) => shard === 'amber');
    t.is(amber?.slices[0]?.syncedIn, 'earlier', String(position));
    await again.sync(exports, [pushedExport('one')]);
    again.socket.terminate();
  }
});

test('a server that stops disconnects its pushers, and acknowledged changes are there after its restart', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server, { term: 5 });
  await pusher.sync(exports, [pushedExport('one')]);

  const [reason, restarted] = await Promise.all([pusher.farewell(), server.restart()]);
  t.teardown(() => restarted.close());

  t.is(reason, 'shutdown');
  const back = await RawPusher.connect(restarted);
  back.hello({ term: 5, position: pusher.position });
  await back.expect('welcome');
  t.deepEqual(back.synced, [exports]);
  t.deepEqual(await names(restarted), ['amber one']);
});
