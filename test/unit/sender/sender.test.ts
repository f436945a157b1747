/**
 * The rules of sender.ts (C), slice-turns.ts (N) and slice-feed.ts (L), tested against a fake
 * cache.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { parseClusterName, type ClusterName } from '../../../src/domain/cluster.js';
import { protocolVersion } from '../../../src/frames/frame.js';
import { UpgradeRefused } from '../../../src/frames/upgrade-refused.js';
import type { SenderState } from '../../../src/sender/sender-state.js';
import type { Outgoing } from '../../../src/sender/source.js';
import { shardName } from '../../support/objects.js';
import { aSlice, exports, schemas, SenderRig } from '../../support/sender/a-sender.js';
import { FakeCache } from '../../support/sender/fake-cache.js';
import { FakeSource } from '../../support/sender/fake-source.js';

test('a sender names itself, and syncs its slice', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one', 'two']);

  await rig.start();

  t.deepEqual(rig.cache.received[0], {
    kind: 'hello',
    protocol: protocolVersion,
    role: 'shard',
    name: 'amber',
    process: 'process-5',
    term: 0,
    takesOver: false,
    route: [],

    agent: 'test/1',
    credit: undefined,
    limits: undefined,
  });
  t.deepEqual(rig.cache.kinds(), ['hello', 'begin', 'put', 'end']);
  await rig.commit();
  t.deepEqual(rig.cache.held(exports), source.truth);
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
  t.deepEqual(rig.cache.violations, []);
});

test('changes after a sync are sent in the order of the source', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();

  source.put('two');
  source.delete('one');
  await rig.settle();
  await rig.commit();

  t.deepEqual(rig.cache.held(exports), { 'acme||two': 'two' });
  t.deepEqual(rig.cache.kinds().slice(-2), ['put', 'delete']);
});

test('a resynced logical cluster is not whole until its sync is acknowledged, and refused objects of it are requested again', async (t) => {
  const rig = new SenderRig(t);
  const acme = parseClusterName('acme')!;
  rig.cache.refuses = ({ name }) => (name === 'bad' ? 'Invalid' : undefined);
  const source = rig.source(exports, ['one', 'bad']);
  await rig.start();
  await rig.commit();
  t.false(rig.sender.state.slices[0]?.whole);

  rig.cache.refuses = () => undefined;
  source.resyncCluster(acme);
  await rig.settle();
  t.like(rig.sender.state.slices[0], { phase: 'synced', whole: false }, 'sent, and not acknowledged');
  await rig.commit();
  t.like(rig.sender.state.slices[0], { phase: 'synced', whole: true });

  source.send({ kind: 'clusterBegin', cluster: acme });
  await rig.settle();
  await rig.commit();
  t.false(rig.sender.state.slices[0]?.whole, 'it has no end yet');
  t.deepEqual(rig.cache.violations, []);
});

test('a slice that keeps a logical cluster is synced but not whole until that cluster is, and survives a lost connection', async (t) => {
  const rig = new SenderRig(t);
  const [acme, bold] = ['acme', 'bold'].map((name) => parseClusterName(name)!) as [ClusterName, ClusterName];
  const source = rig.source(exports, []);
  await rig.start();
  await rig.commit();
  const before = rig.cache.kinds().length;
  const kinds = () =>
    rig.cache
      .kinds()
      .slice(before)
      .filter((kind) => kind !== 'status' && kind !== 'types');

  source.send({ kind: 'begin', revision: '' }, { kind: 'clusterBegin', cluster: acme }, { kind: 'clusterEnd', cluster: acme });
  source.send({ kind: 'clusterKeep', cluster: bold }, { kind: 'end', revision: '' });
  await rig.settle();
  await rig.commit();
  t.deepEqual(kinds(), ['begin', 'clusterBegin', 'clusterEnd', 'clusterKeep', 'end']);
  t.like(rig.sender.state.slices[0], { phase: 'synced', whole: false });

  rig.cache.drop();
  await rig.advance(2_000);
  await rig.settle();
  t.deepEqual(kinds().slice(5), ['hello']);
  t.like(rig.sender.state.slices[0], { phase: 'synced', whole: false });
  source.send({ kind: 'clusterBegin', cluster: bold }, { kind: 'clusterEnd', cluster: bold });
  await rig.settle();
  await rig.commit();
  t.like(rig.sender.state.slices[0], { phase: 'synced', whole: true });
  t.deepEqual(rig.cache.violations, []);
});

test('if the connection is lost while a logical cluster is synced, the whole slice is synced', async (t) => {
  for (const [sent, kinds] of [
    [[], []],
    [[{ kind: 'clusterBegin', cluster: parseClusterName('acme')! }], ['begin', 'put', 'end']],
  ] as const) {
    const rig = new SenderRig(t);
    const source = rig.source(exports, ['one']);
    await rig.start();
    await rig.commit();
    source.send(...sent);
    await rig.settle();
    await rig.commit();
    const before = rig.cache.kinds().length;

    rig.cache.drop();
    await rig.advance(2_000);
    await rig.settle();

    t.deepEqual(
      rig.cache
        .kinds()
        .slice(before)
        .filter((kind) => kind !== 'hello' && kind !== 'status' && kind !== 'types'),
      [...kinds],
    );
  }
});

test('a source that begins again mid-stream resyncs its slice', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();

  source.resync();
  await rig.settle();
  t.is(rig.sender.state.slices[0]?.phase, 'syncing');
  await rig.commit();

  t.deepEqual(rig.cache.kinds(), ['hello', 'begin', 'put', 'end', 'begin', 'put', 'end']);
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
  t.deepEqual(rig.cache.violations, []);
});

test('nothing that a source gives before its first begin is sent', async (t) => {
  const rig = new SenderRig(t);
  const source = new FakeSource();
  const early = { connected: true, open: (signal: AbortSignal) => prefixed(source.open(signal)) };
  rig.sender.add(exports, early);

  await rig.start();

  t.deepEqual(rig.cache.kinds(), ['hello', 'begin', 'end']);
});

test('a slice that follows another slice is opened once that one is acknowledged as synced', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports, ['one']);
  const after = rig.source(schemas, ['two'], { after: exports });
  await rig.start();

  t.is(after.opened, 0);
  t.is(rig.sender.state.slices[1]?.phase, 'waiting');
  rig.cache.commit(2);
  await rig.settle();
  t.is(after.opened, 0);
  await rig.commit();

  t.is(after.opened, 1);
  t.deepEqual(rig.cache.held(schemas), after.truth);
});

test('a slice that follows a withdrawn slice is not held back', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports, ['one']);
  const after = rig.source(schemas, ['two'], { after: exports });
  await rig.start();

  rig.sender.withdraw(exports);
  await rig.settle();

  t.is(after.opened, 1);
});

test('after the cache lost its state, a slice waits again for the one that it follows', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports, ['one']);
  const after = rig.source(schemas, ['two'], { after: exports });
  await rig.start();
  await rig.commit();

  rig.cache.forget();
  await rig.advance(1_000);

  t.is(after.readings, 0);
  await rig.commit();
  t.deepEqual(rig.cache.held(schemas), after.truth);
});

test('a slice must be of the sender’s own shard, may be added once, and may follow only an added slice', (t) => {
  const { sender } = new SenderRig(t);
  sender.add(exports, new FakeSource());

  t.throws(() => sender.add(exports, new FakeSource()), { message: /already/ });
  t.throws(() => sender.add(schemas, new FakeSource(), { after: aSlice('others') }), { message: /not added before/ });
  t.throws(() => sender.add({ ...schemas, shard: shardName('birch') }, new FakeSource()), { message: /not of the shard/ });
});

test('a withdrawn slice is stopped, and nothing of it is sent', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  const before = rig.cache.kinds().length;

  rig.sender.withdraw(exports);
  await rig.settle();
  source.put('two');
  await rig.settle();

  t.is(source.readings, 0);
  t.is(rig.cache.kinds().length, before);
  t.deepEqual(rig.cache.held(exports), { 'acme||one': 'one' });
  t.deepEqual(rig.sender.state.slices, []);
});

test('a slice that is added again after it was withdrawn is synced', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports, ['one']);
  await rig.start();
  rig.sender.withdraw(exports);

  const source = rig.source(exports, ['two']);
  await rig.settle();
  await rig.commit();

  t.deepEqual(rig.cache.held(exports), source.truth);
  t.deepEqual(rig.cache.violations, []);
});

test('a slice that the cache requests again is read anew, and its earlier deletes are not sent', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one', 'two']);
  await rig.start();
  await rig.commit();
  rig.cache.connection?.stall();
  source.put('three');
  await rig.settle();

  source.delete('one');
  rig.cache.resync(exports);
  await rig.settle();
  rig.cache.connection?.flow();
  await rig.settle();
  await rig.commit();

  t.is(source.opened, 2);
  t.is(source.readings, 1);
  t.deepEqual(rig.cache.kinds(), ['hello', 'begin', 'put', 'end', 'put', 'begin', 'put', 'end']);
  t.deepEqual(rig.cache.held(exports), source.truth);
});

test('an end that was under way when the cache requested the slice again does not make the slice synced', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  source.holdsEnd = true;

  rig.cache.resync(exports);
  await rig.settle();
  await rig.commit();

  t.is(rig.sender.state.slices[0]?.phase, 'syncing');
  source.release();
  await rig.settle();
  await rig.commit();
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
});

for (const [boundary, sequence] of [
  ['begin', 1],
  ['end', 3],
] as const) {
  test(`a slice whose ${boundary} was refused is not synced, and is resynced after a while`, async (t) => {
    const rig = new SenderRig(t);
    const source = rig.source(exports, ['one']);
    await rig.start();

    rig.cache.connection?.say({ kind: 'refuse', sequence, reason: 'Invalid', message: 'not like this' });
    await rig.commit();

    t.is(rig.sender.state.slices[0]?.phase, 'waiting');
    t.like(rig.events('sender.refused')[0], { sent: boundary, reason: 'Invalid' });
    t.is(source.opened, 1);
    await rig.advance(1_000);
    await rig.commit();
    t.is(source.opened, 2);
    t.is(rig.sender.state.slices[0]?.phase, 'synced');
    t.deepEqual(rig.cache.violations, []);
  });
}

test('a sync that is refused repeatedly is repeated ever more rarely, until it is accepted', async (t) => {
  const cache = new FakeCache();
  cache.refusesBegin = true;
  const rig = new SenderRig(t, { cache });
  const source = rig.source(exports, ['one']);
  await rig.start();

  for (let second = 0; second < 60; second += 1) {
    await rig.commit();
    await rig.advance(1_000);
  }
  t.true(source.opened >= 5 && source.opened <= 8, `opened ${source.opened} times in a minute`);
  t.is(cache.synced.size, 0);

  cache.refusesBegin = false;
  await rig.advance(60_000);
  await rig.commit();
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
  t.is(rig.clock.pending, 1, 'the timer of the status');
});

/** A sender of a slice whose type the cache does not know. */
async function anUndeclared(t: ExecutionContext) {
  const cache = new FakeCache();
  cache.refusesBegin = true;
  cache.beginRefusal = 'NotFound';
  const rig = new SenderRig(t, { cache });
  const source = rig.source(exports, ['one']);
  await rig.start();
  return { cache, rig, source };
}

test('a slice whose type the cache does not know is not read again until the cache requests it', async (t) => {
  const { cache, rig, source } = await anUndeclared(t);

  for (let second = 0; second < 540; second += 1) {
    await rig.commit();
    await rig.advance(1_000);
  }
  t.is(source.opened, 1);
  t.is(rig.sender.state.slices[0]?.phase, 'waiting');

  cache.refusesBegin = false;
  rig.cache.resync(exports);
  await rig.commit();
  t.is(source.opened, 2);
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
});

test('a slice whose type the cache does not know is tried again after ten minutes without a request', async (t) => {
  const { cache, rig, source } = await anUndeclared(t);
  await rig.commit();

  cache.refusesBegin = false;
  for (let second = 0; second < 601; second += 1) await rig.advance(1_000);
  await rig.commit();

  t.is(source.opened, 2);
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
});

test('a slice that a cache requests repeatedly is resynced at once the first time, then ever more rarely', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();

  const waits: number[] = [];
  for (const opened of [2, 3, 4, 5]) {
    rig.cache.resync(exports);
    let waitedMs = 0;
    for (await rig.settle(); source.opened < opened; waitedMs += 250) await rig.advance(250);
    waits.push(waitedMs);
    await rig.commit();
  }

  t.deepEqual(waits, [0, 750, 1_500, 3_000]);
  await rig.advance(60_000);
  rig.cache.resync(exports);
  await rig.settle();
  t.is(source.opened, 6);
});

test('a slice that waits for a resync gets one, however often the cache requests it', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  rig.cache.resync(exports);
  await rig.commit();

  for (let i = 0; i < 20; i += 1) rig.cache.resync(exports);
  await rig.advance(1_000);
  await rig.commit();

  t.is(source.opened, 3);
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
});

test('a source is opened again only once its last reading has ended', async (t) => {
  const rig = new SenderRig(t);
  const source = new FakeSource();
  const letGo = deferred<void>();
  const slow = async function* (signal: AbortSignal): AsyncGenerator<readonly Outgoing[]> {
    yield* source.open(signal);
    await letGo.promise;
  };
  rig.sender.add(exports, { connected: true, open: slow });
  await rig.start();
  await rig.commit();

  rig.cache.resync(exports);
  await rig.settle();
  t.is(source.opened, 1);
  letGo.resolve();
  await rig.settle();

  t.is(source.opened, 2);
});

test('a refused object is counted and logged without its body, and ends nothing', async (t) => {
  const cache = new FakeCache();
  cache.refuses = ({ name }) => (name === 'bad' ? 'Invalid' : undefined);
  const rig = new SenderRig(t, { cache });
  rig.source(exports, ['good', 'bad']);

  await rig.start();
  await rig.commit();

  t.deepEqual(cache.held(exports), { 'acme||good': 'good' });
  t.is(rig.sender.state.refused, 1);
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
  t.is(rig.sender.state.unacknowledged.mutations, 0);
  const [logged] = rig.events('sender.refused');
  t.like(logged, { cluster: 'acme', name: 'bad', reason: 'Invalid' });
  t.false('body' in (logged ?? {}));
});

test('refusals are logged up to their bound and all counted', async (t) => {
  const cache = new FakeCache();
  cache.refuses = () => 'Forbidden';
  const rig = new SenderRig(t, { cache, refusalsLoggedMax: 2 });
  rig.source(exports, ['a', 'b', 'c', 'd']);

  await rig.start();
  await rig.commit();

  t.is(rig.events('sender.refused').length, 2);
  t.is(rig.sender.state.refused, 4);
});

test('an object that is larger than the cache accepts is not sent, is counted and logged', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  source.put('large', 'x'.repeat(10_001));

  await rig.start();
  await rig.commit();

  t.deepEqual(rig.cache.held(exports), { 'acme||one': 'one' });
  t.deepEqual(rig.cache.violations, []);
  t.is(rig.sender.state.slices[0]?.refused, 1);
  t.like(rig.events('sender.refused')[0], { name: 'large', reason: 'RequestEntityTooLarge' });
});

test('an object that became too large keeps its old version, in a sync and after it, and counts each time', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one', 'grown']);
  await rig.start();
  await rig.commit();

  source.put('grown', 'x'.repeat(10_001));
  await rig.settle();
  t.is(rig.sender.state.refused, 1);
  source.resync();
  await rig.settle();
  await rig.commit();

  t.deepEqual(rig.cache.held(exports), { 'acme||grown': 'grown', 'acme||one': 'one' });
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
  t.is(rig.sender.state.refused, 2);
  t.is(rig.events('sender.refused').length, 2);
  t.like(rig.cache.received.at(-1), { kind: 'end', count: 2 });
  t.deepEqual(rig.cache.violations, []);
});

test('a cache that acknowledges nothing stops the sources at the credit plus one batch', async (t) => {
  const cache = new FakeCache();
  cache.credit = { mutations: 10, bytes: 1_000_000 };
  const rig = new SenderRig(t, { cache });
  const names = Array.from({ length: 100 }, (_, index) => `n${index}`);
  const source = rig.source(exports, names);
  source.batchMax = 4;

  await rig.start();

  t.true(rig.sender.state.unacknowledged.mutations <= 10);
  t.true(source.given <= 4);
  await rig.commit();
  t.deepEqual(cache.held(exports), source.truth);
  t.deepEqual(cache.violations, []);
});

test('a network that accepts no bytes stops the sources', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();

  rig.cache.connection?.stall();
  source.batchMax = 1;
  for (const name of ['a', 'b', 'c', 'd', 'e']) source.put(name);
  const before = source.given;
  await rig.settle();

  t.true(source.given - before <= 2);
  rig.cache.connection?.flow();
  await rig.settle();
  await rig.commit();
  t.deepEqual(rig.cache.held(exports), source.truth);
});

test('slices take turns: a long sync does not hold up a short one', async (t) => {
  const rig = new SenderRig(t, { batchMutationsMax: 2 });
  rig.source(
    exports,
    Array.from({ length: 50 }, (_, index) => `n${index}`),
  );
  rig.source(schemas, ['one']);

  await rig.start();

  const ends = rig.cache.received.flatMap((frame) => (frame.kind === 'end' ? [frame.slice.resource.resource] : []));
  t.deepEqual(ends, ['apiresourceschemas', 'apiexports']);
});

test('an object larger than the whole credit is sent when nothing else is under way', async (t) => {
  const cache = new FakeCache();
  cache.credit = { mutations: 10, bytes: 500 };
  const rig = new SenderRig(t, { cache });
  const source = rig.source(exports, ['a']);
  source.put('large', 'x'.repeat(2_000));
  source.put('z');

  await rig.start();
  await rig.commit();

  t.deepEqual(cache.held(exports), source.truth);
  t.deepEqual(cache.violations, []);
});

test('a lost connection is resumed: unacknowledged changes are sent again and nothing is resynced', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  source.put('two');
  source.delete('one');
  await rig.settle();

  rig.cache.drop();
  await rig.advance(1_000);
  await rig.commit();

  t.is(source.opened, 1);
  t.deepEqual(rig.cache.kinds(), ['hello', 'begin', 'put', 'end', 'put', 'delete', 'hello', 'put', 'delete']);
  t.deepEqual(rig.cache.held(exports), source.truth);
  t.deepEqual(rig.cache.violations, []);
});

test('a standby that waited long reconnects as soon as a pusher that had been welcomed', async (t) => {
  const cache = new FakeCache();
  cache.welcomes = false;
  const rig = new SenderRig(t, { cache, random: () => 0.999 });
  await rig.start();
  for (let i = 0; i < 8; i++) {
    cache.connection?.say({ kind: 'standby' });
    await rig.advance(3_600_000);
    cache.drop();
    await rig.settle();
    const waits = rig.events('sender.disconnected').map(({ afterMs }) => afterMs as number);
    t.true((waits.at(-1) ?? Infinity) <= 200, `${waits.join()} ms`);
    await rig.advance(200);
  }
});

test('a sender that has its shard tries at least every three seconds, however long its cache is away', async (t) => {
  const rig = new SenderRig(t, { random: () => 0.999 });
  await rig.start();
  rig.cache.refusal = new Error('nobody is there');
  rig.cache.drop();
  await rig.settle();

  for (let i = 0; i < 8; i++) await rig.advance(3_000);

  const waits = rig.events('sender.disconnected').map(({ afterMs }) => afterMs as number);
  t.true(waits.length >= 8 && Math.max(...waits) <= 3_000, `${waits.join()} ms`);
});

test('changes that are sent again precede later changes', async (t) => {
  const cache = new FakeCache();
  cache.credit = { mutations: 3, bytes: 1_000_000 };
  const rig = new SenderRig(t, { cache, lastedMs: 0 });
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  source.put('one', 'second');
  source.put('zero');
  await rig.settle();
  source.put('one', 'third');
  source.put('two');
  await rig.settle();
  t.is(rig.sender.state.unacknowledged.mutations, 2);

  cache.drop();
  await rig.advance(1_000);
  await rig.commit();

  t.is(source.opened, 1);
  t.deepEqual(cache.held(exports), { 'acme||one': 'third', 'acme||two': 'two', 'acme||zero': 'zero' });
  t.deepEqual(cache.violations, []);
});

test('a begin that was queued when the connection broke is sent on the next one', async (t) => {
  const rig = new SenderRig(t, { lastedMs: 0 });
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  rig.cache.connection?.stall();
  source.put('two');
  await rig.settle();
  source.resync();
  await rig.settle();

  rig.cache.drop();
  await rig.advance(1_000);
  await rig.commit();

  t.deepEqual(rig.cache.held(exports), source.truth);
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
  t.deepEqual(rig.cache.violations, []);
});

test('changes from an aborted reading are not kept for another connection', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  source.put('two');
  await rig.advance(1_000);
  t.is(rig.sender.state.lagMs, 1_000);

  rig.cache.resync(exports);
  await rig.settle();
  rig.cache.refusal = new Error('gone');
  rig.cache.drop();
  await rig.advance(3_000);

  t.is(rig.sender.state.lagMs, 3_000);
  t.is(rig.sender.state.unacknowledged.mutations, 0);
});

test('changes that a source gave while no cache was connected are sent once one is', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  rig.cache.drop();
  await rig.settle();

  source.put('two');
  await rig.advance(1_000);
  await rig.commit();

  t.is(source.opened, 1);
  t.deepEqual(rig.cache.held(exports), source.truth);
});

test('a sync that was interrupted begins again', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one', 'two']);
  await rig.start();
  rig.cache.commit(2);
  await rig.settle();

  rig.cache.drop();
  await rig.advance(1_000);
  await rig.commit();

  t.is(source.opened, 2);
  t.is(source.readings, 1);
  t.deepEqual(rig.cache.kinds(), ['hello', 'begin', 'put', 'end', 'hello', 'begin', 'put', 'end']);
  t.deepEqual(rig.cache.held(exports), source.truth);
});

test('a sender that reconnects names the last position acknowledged on any connection', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  const positions = (): unknown[] => rig.cache.received.flatMap((frame) => (frame.kind === 'hello' ? [frame.position] : []));

  for (let i = 0; i < 2; i += 1) {
    rig.cache.drop();
    await rig.advance(1_000);
  }

  t.deepEqual(positions(), [undefined, '13', '13'], 'three frames are durable in the first life');
  t.deepEqual(rig.cache.kinds(), ['hello', 'begin', 'put', 'end', 'hello', 'hello'], 'and it goes on');
});

test('a cache that lost its state is sent everything again', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();

  rig.cache.forget();
  await rig.advance(1_000);
  await rig.commit();

  t.is(source.opened, 2);
  t.deepEqual(rig.cache.held(exports), source.truth);
});

test('a source that breaks is opened again after a while and resyncs its slice', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();

  source.fail();
  await rig.settle();
  t.is(source.readings, 0);
  await rig.advance(1_000);
  await rig.commit();

  t.is(source.opened, 2);
  t.is(rig.events('sender.source.failed').length, 1);
  t.deepEqual(rig.cache.kinds().slice(4), ['begin', 'put', 'end']);
});

for (const reason of ['fenced', 'forbidden', 'unsupported'] as const) {
  test(`${reason} ends the run with what the cache said`, async (t) => {
    const rig = new SenderRig(t);
    const source = rig.source(exports, ['one']);
    await rig.start();

    rig.cache.bye(reason);
    const ended = await rig.ended;

    t.deepEqual(ended, { kind: 'refused', reason, message: `because ${reason}` });
    t.is(source.readings, 0);
    t.is(rig.clock.pending, 0);
  });
}

test('if the bye was lost, the close code still says that the shard is fenced', async (t) => {
  const rig = new SenderRig(t);
  await rig.start();

  rig.cache.drop(4002);

  t.like(await rig.ended, { kind: 'refused', reason: 'fenced' });
});

test('a server that forbids the upgrade ends the run; a busy one is tried again when it says', async (t) => {
  const rig = new SenderRig(t, { random: () => 0 });
  rig.cache.refusal = new UpgradeRefused(503, 'busy', { reason: 'ServiceUnavailable', retryAfterMs: 3_000 });
  await rig.start();
  t.like(rig.sender.state.connection, { kind: 'waiting', untilMs: rig.clock.now() + 3_000, message: 'busy' });

  rig.cache.refusal = new UpgradeRefused(403, 'not you', { reason: 'Forbidden' });
  await rig.advance(3_000);

  t.deepEqual(await rig.ended, { kind: 'refused', reason: 'forbidden', message: 'not you' });
});

test('a server that forbids the upgrade without being a cache is tried again', async (t) => {
  const rig = new SenderRig(t, { random: () => 0 });
  rig.cache.refusal = new UpgradeRefused(403, 'RBAC: access denied');
  await rig.start();

  t.like(rig.sender.state.connection, { kind: 'waiting', message: 'RBAC: access denied' });
  await rig.advance(0);
  t.is(rig.cache.tried.length, 2);
});

test('an unreachable cache is tried again by the clock, even if the random wait is zero', async (t) => {
  const rig = new SenderRig(t, { random: () => 0 });
  rig.cache.refusal = new Error('nobody there');
  await rig.start();
  t.is(rig.cache.tried.length, 1);

  await rig.advance(0);

  t.is(rig.cache.tried.length, 2);
});

test('when a cache stops, the sender goes to the next URL', async (t) => {
  const [one, two] = [new FakeCache('one'), new FakeCache('two')];
  const connect = (url: string) => (url === 'wss://one' ? one : two).connect(url);
  const rig = new SenderRig(t, { cache: two, urls: ['wss://one', 'wss://two'], connect });
  const source = rig.source(exports, ['a']);
  await rig.start();
  t.like(rig.sender.state.connection, { kind: 'connected', url: 'wss://one', cacheId: 'one' });

  one.bye('shutdown', 60_000);
  await rig.advance(200);
  await rig.commit();

  t.like(rig.sender.state.connection, { kind: 'connected', url: 'wss://two', cacheId: 'two' });
  t.deepEqual(two.held(exports), source.truth);
});

test('at another URL a sender names its term, so that the cache there learns that the pusher was elsewhere', async (t) => {
  const [one, two] = [new FakeCache('one'), new FakeCache('two')];
  const connect = (url: string) => (url === 'wss://one' ? one : two).connect(url);
  const rig = new SenderRig(t, { cache: two, urls: ['wss://one', 'wss://two'], connect });
  const terms = (cache: FakeCache): readonly number[] => cache.received.flatMap((frame) => (frame.kind === 'hello' ? [frame.term] : []));
  await rig.start();

  one.bye('shutdown', 60_000);
  await rig.advance(200);

  t.deepEqual(terms(one), [0]);
  t.deepEqual(terms(two), [5]);
});

test('a cache that never sends a welcome is given up', async (t) => {
  const rig = new SenderRig(t, { welcomeTimeoutMs: 500 });
  rig.cache.welcomes = false;
  await rig.start();

  await rig.advance(500);

  t.like(rig.sender.state.connection, { kind: 'waiting', message: 'the cache sent no welcome in time' });
  t.false(rig.cache.connection?.isOpen);
});

test('a cache of another protocol version ends the run', async (t) => {
  const rig = new SenderRig(t);
  rig.cache.protocol = 2;

  await rig.start();

  t.like(await rig.ended, { kind: 'refused', reason: 'unsupported' });
});

test('an acknowledgement of an unsent number ends the connection, not the run', async (t) => {
  const rig = new SenderRig(t);
  await rig.start();

  rig.cache.connection?.say({ kind: 'ack', sequence: 7, credit: rig.cache.credit });
  await rig.settle();

  t.is(rig.sender.state.connection.kind, 'waiting');
  t.like(rig.cache.received.at(-1), { kind: 'bye', reason: 'protocol' });
  await rig.advance(1_000);
  t.is(rig.sender.state.connection.kind, 'connected');
});

test('an aborted run waits for acknowledgements, sends a bye and leaves nothing behind', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();

  rig.abort.abort();
  await rig.settle();
  t.is(source.readings, 0);
  t.true(rig.cache.connection?.isOpen);
  await rig.commit();

  t.deepEqual(await rig.ended, { kind: 'stopped' });
  t.like(rig.cache.received.at(-1), { kind: 'bye', reason: 'shutdown' });
  t.false(rig.cache.connection?.isOpen);
  t.deepEqual(rig.cache.held(exports), source.truth);
  t.is(rig.clock.pending, 0);
  t.deepEqual(rig.sender.state.connection, { kind: 'idle' });
});

test('an aborted run waits no longer than its grace', async (t) => {
  const rig = new SenderRig(t, { shutdownGraceMs: 300 });
  rig.source(exports, ['one']);
  await rig.start();
  rig.abort.abort();
  await rig.settle();

  await rig.advance(300);

  t.deepEqual(await rig.ended, { kind: 'stopped' });
  t.is(rig.clock.pending, 0);
});

test('a run that is aborted while it waits to connect again ends at once', async (t) => {
  const rig = new SenderRig(t);
  rig.cache.refusal = new Error('nobody there');
  await rig.start();

  rig.abort.abort();

  t.deepEqual(await rig.ended, { kind: 'stopped' });
  t.is(rig.clock.pending, 0);
});

test('a source that does not end is abandoned after the grace', async (t) => {
  const rig = new SenderRig(t, { shutdownGraceMs: 300 });
  rig.sender.add(exports, { connected: true, open: () => stubborn() });
  await rig.start();
  await rig.commit();
  rig.abort.abort();

  await rig.advance(300);

  t.deepEqual(await rig.ended, { kind: 'stopped' });
  t.is(rig.events('sender.source.stuck').length, 1);
});

test('the cache gets reports on each slice: at once and soon after a change, and at every interval while the slice lags', async (t) => {
  const rig = new SenderRig(t, { statusIntervalMs: 1_000 });
  const source = rig.source(exports, ['one']);
  source.connected = false;
  await rig.start();
  const received = () => rig.cache.received.splice(0).flatMap((frame) => (frame.kind === 'status' ? [frame.freshness] : []));
  t.deepEqual(received(), [[{ slice: exports, connected: false, synced: false, lagMs: 0, whole: false }]]);

  source.connected = true;
  await rig.advance(250);
  t.deepEqual(received(), [[{ slice: exports, connected: true, synced: false, lagMs: 0, whole: false }]]);
  await rig.commit();
  await rig.advance(250);
  t.deepEqual(received(), [[{ slice: exports, connected: true, synced: true, lagMs: 0, whole: true }]]);
  source.put('two');
  await rig.settle();
  for (let ms = 250; ms < 1_000; ms += 250) await rig.advance(250);
  t.deepEqual(received(), []);
  await rig.advance(250);

  t.deepEqual(received(), [[{ slice: exports, connected: true, synced: true, lagMs: 1_000, whole: true }]]);
  for (let ms = 0; ms < 1_500; ms += 250) await rig.advance(250);
  t.deepEqual(received(), [[{ slice: exports, connected: true, synced: true, lagMs: 2_000, whole: true }]]);
  await rig.commit();
  await rig.advance(250);
  t.deepEqual(received(), [[{ slice: exports, connected: true, synced: true, lagMs: 0, whole: true }]], 'it has caught up');
  for (let ms = 0; ms < 3_000; ms += 250) await rig.advance(250);
  t.deepEqual(received(), [], 'a quiet slice is not reported again');
});

test('the cache is informed once that a slice is no longer pushed, and again about a slice that is pushed anew', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports, ['one']);
  rig.source(schemas, ['two']);
  await rig.start();
  await rig.commit();
  await rig.advance(250);
  const received = () =>
    rig.cache.received
      .splice(0)
      .flatMap((frame) => (frame.kind === 'status' ? [[...frame.freshness.map(({ slice }) => slice), frame.withdrawn]] : []));
  received();

  rig.sender.withdraw(exports);
  await rig.advance(250);
  await rig.advance(250);
  t.deepEqual(received(), [[[exports]]]);

  rig.source(exports, ['one']);
  await rig.advance(250);
  t.deepEqual(received(), [[exports, []]]);
});

test('a slice with refused objects is not whole until each is accepted or gone, or the slice is resynced', async (t) => {
  const rig = new SenderRig(t);
  rig.cache.refuses = ({ name }) => (name.startsWith('bad') ? 'Invalid' : undefined);
  const source = rig.source(exports, ['one', 'bad', 'bad-too']);
  await rig.start();
  await rig.commit();
  const isWhole = (): boolean | undefined => rig.sender.state.slices[0]?.whole;
  t.like(rig.sender.state.slices[0], { phase: 'synced', whole: false });

  rig.cache.refuses = ({ name }) => (name === 'bad-too' ? 'Invalid' : undefined);
  source.delete('bad');
  await rig.commit();
  t.false(isWhole(), 'the other one is still missing');
  rig.cache.refuses = () => undefined;
  source.put('bad-too');
  await rig.commit();
  t.true(isWhole());
});

const tooLarge = 'x'.repeat(10_001);

test('a slice with an object larger than the cache accepts is not whole until the object is smaller or gone', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  source.put('large', tooLarge);
  const isWhole = (): boolean | undefined => rig.sender.state.slices[0]?.whole;
  await rig.start();
  await rig.commit();
  t.deepEqual(rig.cache.held(exports), { 'acme||one': 'one' });
  t.false(isWhole());

  source.put('large', 'small');
  await rig.commit();
  t.true(isWhole());
});

test('a late acknowledgement of an object’s earlier version does not make its slice whole', async (t) => {
  const rig = new SenderRig(t);
  rig.cache.refuses = (key) => (key.name === 'bad' && 'body' in key ? 'Invalid' : undefined);
  const source = rig.source(exports, ['one', 'grown']);
  const isWhole = (): boolean | undefined => rig.sender.state.slices[0]?.whole;
  await rig.start();
  await rig.commit();
  t.true(isWhole());

  source.delete('bad');
  source.put('bad');
  source.delete('grown');
  source.put('grown', tooLarge);
  await rig.settle();
  await rig.commit();
  t.deepEqual(rig.cache.held(exports), { 'acme||one': 'one' });
  t.false(isWhole());

  source.delete('bad');
  await rig.commit();
  t.false(isWhole(), 'the other one is still missing');
});

test('a sync that is repeated after a lost connection still lacks its too large object', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  source.put('large', tooLarge);
  await rig.start();
  rig.cache.drop();
  await rig.advance(60_000);
  await rig.commit();

  t.like(rig.sender.state.slices[0], { phase: 'synced', whole: false });
});

test('a late refusal from an earlier sync does not count against the present one', async (t) => {
  const rig = new SenderRig(t);
  rig.cache.refuses = ({ name }) => (name === 'bad' ? 'Invalid' : undefined);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();

  source.put('late');
  await rig.settle();
  const put = rig.cache.received.findLast(({ kind }) => kind === 'put');
  rig.cache.resync(exports);
  source.delete('late');
  await rig.advance(1_000);
  const sequence = put?.kind === 'put' ? put.sequence : 0;
  rig.cache.connection?.say({ kind: 'refuse', sequence, reason: 'Invalid', message: 'late' });
  await rig.settle();
  await rig.commit();

  t.like(rig.sender.state.slices[0], { phase: 'synced', whole: true });
});

test('a sender leaves a connected cache that acknowledges nothing, and tries again', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports, ['one']);
  await rig.start();

  for (let second = 0; second < 59; second += 1) await rig.advance(1_000);
  t.is(rig.sender.state.connection.kind, 'connected');
  for (let second = 0; second < 3; second += 1) await rig.advance(1_000);

  t.true(rig.cache.received.filter(({ kind }) => kind === 'hello').length > 1);
});

test('a sender without slices sends no freshness', async (t) => {
  const rig = new SenderRig(t);

  await rig.start();

  t.deepEqual(
    rig.cache.received.map(({ kind }) => kind),
    ['hello'],
  );
});

test('the state shows how much is unacknowledged and how old the oldest of it is', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports, ['one', 'two']);
  t.is(rig.sender.state.connection.kind, 'idle');
  await rig.start();
  await rig.advance(250);

  const { slices, unacknowledged, lagMs } = rig.sender.state;

  t.like(slices[0], { phase: 'syncing', objects: 2, lagMs: 250, refused: 0, connected: true });
  t.is(slices[0]?.unacknowledged.mutations, 4);
  t.is(unacknowledged.mutations, 4);
  t.is(lagMs, 250);
});

test('the lag of changes that wait for another connection keeps rising', async (t) => {
  const rig = new SenderRig(t);
  const source = rig.source(exports, ['one']);
  await rig.start();
  await rig.commit();
  source.put('two');
  await rig.settle();
  rig.cache.refusal = new Error('gone');

  rig.cache.drop();
  await rig.advance(5_000);

  t.is(rig.sender.state.lagMs, 5_000);
  t.is(rig.sender.state.slices[0]?.phase, 'synced');
});

test('`states` gives one state at once, then changes at most once an interval, and ends with the run', async (t) => {
  const rig = new SenderRig(t, { stateIntervalMs: 100 });
  const seen: SenderState[] = [];
  const watching = (async () => {
    for await (const state of rig.sender.states(new AbortController().signal)) seen.push(state);
  })();
  await rig.settle();
  t.is(seen.length, 1);
  rig.source(exports, ['one']);
  await rig.start();
  t.is(seen.length, 1);

  await rig.advance(100);
  t.is(seen.length, 2);
  t.is(seen[1]?.connection.kind, 'connected');
  await rig.advance(100);
  t.is(seen.length, 2);
  rig.abort.abort();
  await rig.commit();
  await rig.ended;
  await rig.advance(100);
  await rig.advance(100);

  await watching;
  t.is(seen.at(-1)?.connection.kind, 'idle');
});

test('`states` ends when its signal is aborted', async (t) => {
  const rig = new SenderRig(t);
  const abort = new AbortController();
  const states = rig.sender.states(abort.signal);
  await states.next();
  const next = states.next();

  abort.abort();

  t.deepEqual(await next, { done: true, value: undefined });
  t.is(rig.clock.pending, 0);
});

test('a sender needs a URL and runs once', async (t) => {
  t.throws(() => new SenderRig(t, { urls: [] }), { message: /URL/ });
  const rig = new SenderRig(t);
  await rig.start();

  await t.throwsAsync(rig.sender.run(rig.abort.signal), { message: /once/ });
});

async function* prefixed(batches: AsyncIterable<readonly Outgoing[]>) {
  yield [{ kind: 'delete', key: { cluster: 'acme', namespace: '', name: 'early' } } as const];
  yield* batches;
}

async function* stubborn(): AsyncGenerator<readonly Outgoing[]> {
  yield [{ kind: 'begin', revision: '7' }];
  await new Promise(() => {});
}
