/**
 * Look-ups of a watched type, beside the same look-ups of a reader that requests each object. An
 * answer must contain everything that was acknowledged before the question, whatever happens to the
 * watch.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import {
  CacheConnection,
  CacheReader,
  defaultLookupBounds,
  openCacheReader,
  WatchedTypes,
  type LookupBounds,
  type ObjectRef,
  type WatchedRef,
} from '../../../src/client.js';
import { systemClock } from '../../../src/clock.js';
import { seeded } from '../../support/crash/random.js';
import { aClusterCachedResource, shardName } from '../../support/objects.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestAuthority } from '../../support/test-authority.js';
import { silent } from '../../support/test-store.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aWholeChild } from '../../support/whole-child.js';
import { aReader, aRef, exportAt, patience } from '../../support/lookup/a-reader.js';

const exports = sliceOf('apiexports');
const ofExports: WatchedRef = { group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apiexports' };
/** Requests a freshness report for every look-up. */
const fresh = { reportAgeMaxMs: 0 };
const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);

type Watching = Readonly<{ reader: CacheReader; objectsAsked: () => number }>;
type WatchingOptions = Readonly<{
  types?: readonly WatchedRef[];
  bounds?: Partial<LookupBounds>;
  at?: string;
  watchAt?: string;
  ca?: string;
  isAwaited?: boolean;
}>;

/** `at`: the URL of requests. `watchAt`: the URL of watches, if it differs. */
async function aWatchingReader(
  t: ExecutionContext,
  server: TestServer,
  { types = [ofExports], bounds = fresh, at = server.url, watchAt = at, ca = server.certificate, isAwaited = true }: WatchingOptions = {},
): Promise<Watching> {
  const { master } = server;
  const options = { ...defaultLookupBounds, ...patience, ...bounds, cache: at };
  const identity = { ca, certificate: master.certificate, key: master.key };
  const connection = new CacheConnection({ clock: systemClock, identity: () => identity }, options);
  let objectsAsked = 0;
  const counting = {
    ask: (target: string, signal?: AbortSignal) => {
      if (!target.startsWith('/services/cache/freshness')) objectsAsked += 1;
      return connection.ask(target, signal);
    },
    close: () => connection.close(),
  };
  const access = {
    server: `${watchAt}/services/cache/shards/*`,
    serverName: undefined,
    insecure: false,
    credentials: () => Promise.resolve(identity),
  };
  const watched = WatchedTypes.open({ access, clock: systemClock, random: Math.random, log: silent, userAgent: 'test' }, types, options);
  const reader = new CacheReader({ clock: systemClock, connection: counting, watched }, options);
  t.teardown(() => reader.close());
  if (isAwaited) await until(() => reader.watching().every(({ kind }) => kind === 'following'));
  return { reader, objectsAsked: () => objectsAsked };
}

/** The answer without ages, which differ because one question came a moment later. */
async function answerOf(reader: CacheReader, ref: ObjectRef): Promise<unknown> {
  const answer = await reader.get(ref);
  const ageless = (value: unknown): unknown => {
    const { reportedAgoMs: _, changedAgoMs: __, ...others } = value as Record<string, unknown>;
    return others;
  };
  switch (answer.kind) {
    case 'found':
      return { ...answer, text: JSON.parse(answer.text), freshness: answer.freshness && ageless(answer.freshness) };
    case 'absent':
      return { ...answer, shards: answer.shards.map(ageless) };
    case 'ambiguous':
      return answer;
  }
}

test('a look-up of a watched type has the same answer as the cache gives, and mostly needs no request for the object', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, [
    exportAt('root:acme', 'one'),
    exportAt('root:acme', 'both'),
    exportAt('root:shared', 'ours', 'victim'),
    pushedExport('pathless', { cluster: 'beta' }),
  ]);
  const birch = await RawPusher.open(server, { name: 'birch' });
  await birch.syncWhole(sliceOf('apiexports', { shard: 'birch' }), [
    exportAt('root:acme', 'both'),
    exportAt('root:other', 'two', 'gamma'),
    exportAt('root:shared', 'theirs', 'evil'),
  ]);
  const { reader, objectsAsked } = await aWatchingReader(t, server);
  const asking = aReader(t, server, { bounds: fresh });

  const inMemory: Partial<ObjectRef>[] = [
    {},
    { cluster: 'root:acme' },
    { name: 'none' },
    { cluster: 'nowhere' },
    { name: 'both', shard: 'amber' },
    { name: 'both', shard: 'birch' },
    { name: 'both', shard: 'birch', cluster: 'root:acme' },
    { shard: 'birch' },
    { name: 'pathless', cluster: 'beta' },
    { name: 'two', cluster: 'root:other' },
    { identity: '' },
  ];
  const onlyAsked: Partial<ObjectRef>[] = [
    { name: 'both' },
    { name: 'both', cluster: 'root:acme' },
    { name: 'none', cluster: 'root:acme' },
    { name: 'theirs', cluster: 'root:shared' },
    { cluster: 'root:nowhere' },
    { version: 'v1alpha1' },
    { version: 'v7' },
    { namespace: 'team' },
    { resource: 'apiresourceschemas', version: 'v1alpha1' },
    { shard: 'nobody' },
  ];
  for (const ref of inMemory) {
    const before = objectsAsked();
    t.deepEqual(await answerOf(reader, aRef(ref)), await answerOf(asking, aRef(ref)), JSON.stringify(ref));
    t.is(objectsAsked(), before, JSON.stringify(ref));
  }
  for (const ref of onlyAsked) t.deepEqual(await answerOf(reader, aRef(ref)), await answerOf(asking, aRef(ref)), JSON.stringify(ref));
  t.deepEqual(reader.watching(), [{ ...ofExports, kind: 'following', objects: 7, bytes: reader.watching()[0]!.bytes }]);
  await t.throwsAsync(reader.get(aRef({ name: '..' })), { message: /name/ });
});

test('namespaced types are watched, and objects whose logical cluster gets another path are found under that', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'a|b', namespace: 'team', uid: 'u' },
    rules: [],
  };
  await amber.syncWhole(sliceOf('roles', { group: rbac.group }), [pushedObject(role)], 'v1');
  await amber.syncWhole(exports, [exportAt('root:before')]);
  const { reader, objectsAsked } = await aWatchingReader(t, server, { types: [ofExports, { ...rbac, resource: 'roles' }, ofExports] });
  const aRole = { ...rbac, resource: 'roles', cluster: 'acme', name: 'a|b' };

  t.like(await reader.get({ ...aRole, namespace: 'team' }), { kind: 'found', shard: 'amber' });
  t.like(await reader.get({ ...aRole, namespace: 'other' }), { kind: 'absent', missing: 'object', whole: true });
  t.like(await reader.get(aRef({ cluster: 'root:before' })), { kind: 'found' });
  t.is(objectsAsked(), 0);
  await amber.acknowledged(amber.put(exports, [exportAt('root:after')]));
  await until(async () => (await reader.get(aRef({ cluster: 'root:after' }))).kind === 'found');
  const before = objectsAsked();
  t.like(await reader.get(aRef({ cluster: 'root:after' })), { kind: 'found' });
  t.is(objectsAsked(), before);
  t.like(await reader.get(aRef({ cluster: 'root:before' })), { kind: 'absent', missing: 'path' });
});

test('a declared type is not watched: memory does not show which versions and logical clusters are served', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  const declaring = aClusterCachedResource('hash');
  const metadata = { ...(declaring['metadata'] as object), uid: 'u' };
  await amber.syncWhole(
    sliceOf('clustercachedresources', { group: 'cache.kcp.io' }),
    [pushedObject({ ...declaring, metadata })],
    'v1alpha1',
  );
  const instance = { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name: 'big', uid: 'u' } };
  await amber.syncWhole(sliceOf('instances', { group: 'machines.svm.io', identity: 'hash' }), [pushedObject(instance)], 'v1');
  const type = { group: 'machines.svm.io', version: 'v1', resource: 'instances' };
  const { reader, objectsAsked } = await aWatchingReader(t, server, { types: [ofExports, type], isAwaited: false });
  const ref = { ...type, identity: 'hash', cluster: 'acme', name: 'big' };

  t.like(await reader.get(ref), { kind: 'found' });
  t.like(await reader.get({ ...ref, cluster: 'beta' }), { kind: 'absent', missing: 'type', whole: false });
  t.is(objectsAsked(), 2);
  t.is(reader.watching()[1]?.kind, 'reading');
});

test('an invalid path is not taken for the name of a logical cluster, and objects that share a path cost no more than others', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  const many = 5_000;
  const alike = Array.from({ length: many }, (_, i) => exportAt('root:alike', 'one', `c${i}`));
  await amber.syncWhole(exports, [exportAt('victim', 'payroll', 'evil'), exportAt('system:foo', 'payroll', 'other')]);
  for (let at = 0; at < many; at += 500) await amber.acknowledged(amber.put(exports, alike.slice(at, at + 500)));
  const started = performance.now();
  const { reader } = await aWatchingReader(t, server);
  const tookMs = performance.now() - started;
  const asking = aReader(t, server, { bounds: fresh });

  for (const cluster of ['victim', 'system:foo', 'evil', 'root:alike', 'c17']) {
    const ref = aRef({ cluster, name: cluster.includes('al') || cluster.startsWith('c') ? 'one' : 'payroll' });
    t.deepEqual(await answerOf(reader, ref), await answerOf(asking, ref), cluster);
  }
  await amber.acknowledged(amber.put(exports, [exportAt('', 'payroll', 'victim')]));
  await amber.acknowledged(amber.delete(exports, ['payroll'], 'victim'));
  t.like(await reader.get(aRef({ cluster: 'victim', name: 'payroll' })), { kind: 'absent', whole: true });
  t.like(await reader.get(aRef({ cluster: 'evil', name: 'payroll' })), { kind: 'found' });
  t.log(`${many} of one path in ${tookMs.toFixed(0)} ms`);
});

test('a cache that returns with another disk, or older state, is asked until the watch has read that', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-lookup-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const authority = new TestAuthority(folder);
  // The epochs of the other cache are random, lower or higher than the former's, so the test tries
  // several times.
  for (let round = 0; round < rounds(6); round += 1) {
    const [former, later] = await Promise.all([aServer(t, { authority }), aServer(t, { authority })]);
    const proxy = await TcpProxy.start(Number(new URL(former.url).port));
    t.teardown(() => proxy.close());
    const before = await RawPusher.open(former);
    await before.syncWhole(exports, [pushedExport('changed', { spec: { of: 'before' } }), pushedExport('deleted')]);
    const again = await RawPusher.open(later);
    await again.syncWhole(exports, [pushedExport('changed', { spec: { of: 'after' } }), pushedExport('new')]);
    const ca = `${former.certificate}\n${later.certificate}`;
    const { reader } = await aWatchingReader(t, former, { at: `https://localhost:${proxy.port}`, watchAt: former.url, ca });
    t.like(await reader.get(aRef({ name: 'deleted' })), { kind: 'found' });

    proxy.redirect(Number(new URL(later.url).port));
    proxy.cut();

    // The watch on the former cache is still open, like one that did not notice that the cache has
    // gone.
    t.like(await reader.get(aRef({ name: 'deleted' })), { kind: 'absent', whole: true });
    t.like(await reader.get(aRef({ name: 'new' })), { kind: 'found' });
    const changed = await reader.get(aRef({ name: 'changed' }));
    t.true(changed.kind === 'found' && changed.text.includes('after'));
    reader.close();
  }
});

test('a look-up beside concurrent ones does not get a report that was requested before it began', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, []);
  const proxy = await TcpProxy.start(Number(new URL(server.url).port));
  t.teardown(() => proxy.close());
  proxy.delay(5);
  const { reader } = await aWatchingReader(t, server, { at: `https://localhost:${proxy.port}` });
  const over = new AbortController();
  t.teardown(() => over.abort());
  const others = Array.from({ length: 8 }, async () => {
    while (!over.signal.aborted) await reader.get(aRef({ name: 'none' }));
  });
  const wrong: string[] = [];
  for (let round = 0; round < 40; round += 1) {
    await amber.acknowledged(amber.put(exports, [pushedExport(`of-${round}`)]));
    const answer = await reader.get(aRef({ name: `of-${round}` }));
    if (answer.kind !== 'found') wrong.push(`${round}: ${answer.kind}`);
  }
  over.abort();
  await Promise.all(others);
  t.deepEqual(wrong, []);
});

test('sequential look-ups leave the event loop turns for other work', async (t) => {
  const server = await aServer(t);
  await (await RawPusher.open(server)).syncWhole(exports, [pushedExport('one')]);
  const { reader } = await aWatchingReader(t, server, { bounds: { reportAgeMaxMs: 60_000 } });
  let turns = 0;
  const counting = setInterval(() => (turns += 1), 1);
  for (let i = 0; i < 20_000; i += 1) await reader.get(aRef());
  clearInterval(counting);
  t.true(turns > 5, `${turns} turns`);
});

test('an answer contains what was acknowledged before the question: random puts and deletes of two shards, with resyncs', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const server = await aServer(t);
  const shards = ['amber', 'birch'] as const;
  const pushers = await Promise.all(shards.map((name) => RawPusher.open(server, { name })));
  const truth = new Map<string, number>();
  for (const [i, pusher] of pushers.entries()) await pusher.syncWhole(sliceOf('apiexports', { shard: shards[i]! }), []);
  const { reader, objectsAsked } = await aWatchingReader(t, server);
  const body = (name: string, generation: number) => pushedExport(name, { spec: { generation } });
  let looked = 0;
  for (let step = 1; step <= rounds(400); step += 1) {
    const at = random.below(shards.length);
    const [pusher, shard] = [pushers[at]!, shards[at]!];
    const slice = sliceOf('apiexports', { shard });
    const name = `of-${shard}-${random.below(6)}`;
    const what = random.below(10);
    if (what < 5) {
      await pusher.acknowledged(pusher.put(slice, [body(name, step)]));
      truth.set(name, step);
    } else if (what < 8) {
      await pusher.acknowledged(pusher.delete(slice, [name]));
      truth.delete(name);
    } else if (what < 9) {
      for (const each of truth.keys()) if (each.startsWith(`of-${shard}`)) truth.delete(each);
      await pusher.sync(slice, [body(name, step)]);
      truth.set(name, step);
    }
    for (const asked of [name, `of-${shards[random.below(2)]}-${random.below(6)}`]) {
      const answer = await reader.get(aRef({ name: asked }));
      looked += 1;
      const generation =
        answer.kind === 'found' ? (JSON.parse(answer.text) as { spec: { generation: number } }).spec.generation : undefined;
      if (generation !== truth.get(asked)) t.fail(`step ${step}: ${asked} is ${generation}, and should be ${truth.get(asked)}`);
      if (answer.kind === 'absent' && !answer.whole) t.fail(`step ${step}: the absence of ${asked} is not proved`);
    }
  }
  t.log(`${objectsAsked()} of ${looked} look-ups asked for the object`);
  t.true(objectsAsked() < looked);
});

test('a watch that hangs or is cut off costs extra requests, and makes no answer stale', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, [pushedExport('one', { spec: { of: 'before' } })]);
  const proxy = await TcpProxy.start(Number(new URL(server.url).port));
  t.teardown(() => proxy.close());
  const { reader, objectsAsked } = await aWatchingReader(t, server, { watchAt: `https://localhost:${proxy.port}` });
  const specOf = async (name = 'one'): Promise<unknown> => {
    const answer = await reader.get(aRef({ name }));
    return answer.kind === 'found' ? (JSON.parse(answer.text) as { spec?: { of: string } }).spec?.of : answer.kind;
  };
  t.is(await specOf(), 'before');
  t.is(objectsAsked(), 0);

  for (const [break_, of] of [
    [() => proxy.stall(), 'stalled'],
    [() => (proxy.refuse(), proxy.cut()), 'cut'],
  ] as const) {
    break_();
    await amber.acknowledged(amber.put(exports, [pushedExport('one', { spec: { of } }), pushedExport(`new-${of}`)]));
    t.is(await specOf(), of);
    t.not(await specOf(`new-${of}`), 'absent');
    await amber.acknowledged(amber.delete(exports, [`new-${of}`]));
    t.is(await specOf(`new-${of}`), 'absent');
    proxy.heal();
    await until(async () => {
      const before = objectsAsked();
      t.is(await specOf(), of);
      return objectsAsked() === before;
    }, 20_000);
  }
});

test("look-ups continue across a restart of the cache, and use memory again once the watch knows the cache's revision", async (t) => {
  const server = await aServer(t, { config: 'watch: {bookmarkInterval: 200ms}' });
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, [pushedExport('one')]);
  const proxy = await TcpProxy.start(Number(new URL(server.url).port));
  t.teardown(() => proxy.close());
  const { reader, objectsAsked } = await aWatchingReader(t, server, { at: `https://localhost:${proxy.port}` });
  t.like(await reader.get(aRef()), { kind: 'found' });
  t.is(objectsAsked(), 0);

  const restarted = await server.restart({ config: 'watch: {bookmarkInterval: 200ms}' });
  t.teardown(() => restarted.close());
  proxy.redirect(Number(new URL(restarted.url).port));
  proxy.cut();

  const isFromMemory = async (name: string): Promise<boolean> => {
    const before = objectsAsked();
    t.like(await reader.get(aRef({ name })), { kind: 'found' });
    return objectsAsked() === before;
  };
  await until(() => isFromMemory('one'));
  const again = await RawPusher.open(restarted, { term: Date.now() });
  await again.syncWhole(exports, [pushedExport('one'), pushedExport('two')]);
  await isFromMemory('two');
  await until(() => isFromMemory('two'));
});

test('even for a type on more shards than a report lists, no object is requested', async (t) => {
  const server = await aServer(t, { config: `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}` });
  const shards = Array.from({ length: 130 }, (_, i) => shardName(`shard-${i}`));
  await aWholeChild(
    t,
    server,
    shards.map((shard) => ({ ...exports, shard })),
  );
  await (await RawPusher.open(server, { name: 'zinc' })).syncWhole(sliceOf('apiexports', { shard: 'zinc' }), [pushedExport('one')]);
  const asking = aReader(t, server, { bounds: fresh });
  await until(async () => (await asking.freshness(ofExports)).whole);
  const { reader, objectsAsked } = await aWatchingReader(t, server);

  for (let round = 0; round < 3; round += 1) {
    t.like(await reader.get(aRef()), { kind: 'found', shard: 'zinc', freshness: { shard: 'zinc', whole: true } });
    t.like(await reader.get(aRef({ name: 'none' })), { kind: 'absent', missing: 'object', whole: true, shardsLeftOut: 31 });
  }
  t.is(objectsAsked(), 0);
});

test('a type with more objects or bytes than memory may hold is requested object by object', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(
    exports,
    Array.from({ length: 20 }, (_, i) => pushedExport(`of-${i}`)),
  );
  for (const bounds of [{ watchedObjectsMax: 19 }, { watchedBytesMax: 1_000 }]) {
    const { reader, objectsAsked } = await aWatchingReader(t, server, { bounds: { ...fresh, ...bounds }, isAwaited: false });
    await until(() => reader.watching()[0]?.kind === 'full');

    t.like(await reader.get(aRef({ name: 'of-3' })), { kind: 'found' });
    t.like(await reader.get(aRef({ name: 'none' })), { kind: 'absent', whole: true });
    t.is(objectsAsked(), 2);
    t.like(reader.watching()[0], { objects: 0, bytes: 0 });
  }
  await server.untilNoWatch();
});

test('before the watch has read everything, look-ups ask the cache', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, [pushedExport('one')]);
  const nowhere = await aWatchingReader(t, server, { watchAt: 'https://localhost:1', isAwaited: false });

  t.like(await nowhere.reader.get(aRef()), { kind: 'found', freshness: { whole: true } });
  t.like(nowhere.reader.watching()[0], { kind: 'reading' });
  t.is(nowhere.objectsAsked(), 1);
});

test('an opened reader watches the given types, and leaves no watch when it closes', async (t) => {
  const server = await aServer(t);
  const { certificate, key } = server.master;
  const identity = { ca: server.certificate, certificate, key };
  const wrong = [ofExports, { ...ofExports, resource: '..' }];
  t.throws(() => openCacheReader({ cache: server.url, identity, watch: wrong }), { message: /resource/ });
  const reader = openCacheReader({ cache: server.url, identity, watch: [ofExports, ofExports] });
  await until(() => reader.watching()[0]?.kind === 'following');
  t.is(await server.metric('strata_watches_open'), 1);

  reader.close();

  await server.untilNoWatch();
  await t.throwsAsync(reader.get(aRef()), { message: /closed/ });
});
