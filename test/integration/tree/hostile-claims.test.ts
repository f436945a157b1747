import { largeTest } from '../../support/sizes.js';
import { processorMs } from '../../support/fastest.js';
import { test } from '../../support/test.js';
import type { FrameOf } from '../../../src/frames/frame.js';
import { childNeighbour } from '../../../src/domain/via.js';
import type { LinkPolicies } from '../../../src/domain/link-policies.js';
import { aPolicy } from '../../support/link-rules.js';
import { aBody, aKey, shardName } from '../../support/objects.js';
import type { Slice } from '../../../src/domain/slice.js';
import { aClaim, aSlice, aFullSync, mustPush } from '../../support/pushes.js';
import { anUpsert } from './an-upsert.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';
import { alwaysThere, byesOf, TreeRig } from './tree-rig.js';
import { Gate } from './gate.js';
import { claimSentTo, scriptedChild } from './scripted-child.js';
import { collectGarbage } from '../../support/collect-garbage.js';

const exports = aSlice();
const amber = shardName('amber');
const everything = aPolicy({ types: ['*'] });
const nothingUp: LinkPolicies = {
  forward: everything,
  follow: everything,
  children: new Map([['*', { accept: aPolicy(), offer: aPolicy() }]]),
};

for (const isYours of [false, true])
  test.serial(
    `a child that may claim nothing fills no memory with claims, ${isYours ? 'as what it has from here' : 'control'}`,
    async (t) => {
      const rig = new TreeRig();
      const root = await rig.cache('root', { policies: nothingUp });
      t.teardown(() => root.stop());
      const { child, end } = await scriptedChild(rig, root);
      collectGarbage();
      const before = process.memoryUsage().heapUsed;

      const megabyte = 1024 * 1024;
      for (let at = 0; at < 2_000; at += 1) {
        const path = Array.from({ length: 64 }, (_, i) => Buffer.alloc(64, `${at} ${i} `).toString('latin1'));
        child.send(aClaimFrame({ shard: shardName(`s${at}`), path, isYours }));
        if (at % 100 === 99) await rig.settle();
        child.sent.length = 0;
      }
      await rig.settle();
      collectGarbage();

      t.deepEqual(byesOf(end), []);
      t.is(root.known.shardCount, 0);
      const grown = (process.memoryUsage().heapUsed - before) / megabyte;
      t.log(`${Math.round(grown)} MiB for 2,000 claims, none of which was accepted`);
      t.true(grown < 20);
    },
  );

test('the server reads only as many claims of a child as the store has room for', async (t) => {
  const rig = new TreeRig();
  const gate = new Gate();
  const root = await rig.cache('root', { soon: gate.soon });
  t.teardown(() => root.stop());
  const { child, counted } = await scriptedChild(rig, root);
  gate.shut();
  const before = counted.frames;

  for (let i = 1; i <= 50_000; i++) child.send(aClaimFrame({ term: i }));
  for (let i = 0; i < 20; i++) await rig.settle();

  t.log(`${counted.frames - before} claims were read and wait for a store that commits nothing`);
  t.true(counted.frames - before < 25_000);
  gate.open();
});

test('a shard that a child claimed with the highest possible term can get a pusher again, and other caches learn of it', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'] });
  t.teardown(() => [root, east].forEach(({ stop }) => stop()));
  const lane = root.store.writer.lane();
  const ofRoot = aClaim({ origin: root.store.cacheId });
  await mustPush(lane, [ofRoot, ...aFullSync({}, [anUpsert()])]);
  await rig.advance(1_000);
  const { child } = await scriptedChild(rig, root);
  child.send(aClaimFrame({ term: 2 ** 42 + 2 ** 20, origin: 'id-of-west', path: ['id-of-west'] }));
  await rig.advance(1_000);
  t.is(root.known.shard(amber)?.via, childNeighbour('west'));
  child.terminate();
  await rig.advance(1_000);

  // The fenced process ends, and another one starts.
  const [given, next] = [2 ** 42 + 2 ** 20 + 1, { process: 'next', term: 0, nowMs: 5 }];
  await mustPush(lane, [
    { kind: 'acquire', shard: amber, ...next },
    ...aFullSync({}, [anUpsert('one', { by: given }), anUpsert('two', { by: given })], given),
  ]);
  for (let i = 0; i < 20; i++) await rig.advance(60_000);

  t.is(root.known.shard(amber)?.via, 'local');
  t.true(root.known.isSynced(exports));
  t.is(east.known.shard(amber)?.origin, root.store.cacheId);
  t.true(east.known.isSynced(exports));
});

test('objects that a child invents are not passed on, whatever path they have', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root', { policies: nothingUp });
  t.teardown(() => root.stop());
  await mustPush(root.store.writer.lane(), [aClaim({ origin: root.store.cacheId }), ...aFullSync({}, [anUpsert()])]);
  const { child, end } = await scriptedChild(rig, root);
  const ids = [[], [root.store.cacheId], Array.from({ length: 64 }, () => root.store.cacheId), ['id-of-west', 'id-of-west']];
  for (const path of ids)
    for (const origin of [root.store.cacheId, 'id-of-west', ''])
      for (const term of [1, 1_000, 2 ** 40]) child.send(aClaimFrame({ path, origin, term, isYours: true }));
  for (let i = 0; i < 20; i++) await rig.advance(60_000);

  t.is(root.known.shard(amber)?.via, 'local');
  t.deepEqual(
    end.sent.filter(({ kind }) => ['begin', 'put', 'end', 'digest'].includes(kind)).map(({ kind }) => kind),
    [],
  );
});

test('a child that claims a shard with this cache as its origin does not cause an endless loop', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  t.teardown(() => root.stop());
  await mustPush(root.store.writer.lane(), [aClaim({ origin: root.store.cacheId }), ...aFullSync({}, [anUpsert()])]);
  const { child, end } = await scriptedChild(rig, root);

  child.send(aClaimFrame({ term: 1_005, origin: root.store.cacheId, path: [root.store.cacheId, 'id-of-west'] }));
  for (let i = 0; i < 20; i++) await rig.advance(60_000);
  const claims = end.sent.filter((frame): frame is FrameOf<'claim'> => frame.kind === 'claim');
  t.true(claims.length < 10);
});

largeTest('a shard that changes its origin all the time is sent to another link only at a bounded rate', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'] });
  t.teardown(() => [root, east].forEach(({ stop }) => stop()));
  await rig.settle();
  const { child } = await scriptedChild(rig, root);
  const toEast = rig.connections[0]?.[1];
  if (toEast === undefined) throw new Error('east is not there');
  const from = toEast.sent.length;
  const startedMs = performance.now();
  for (let ms = 1; ms <= 100; ms++) {
    for (let i = 0; i < 1_000; i++) child.send(aClaimFrame({ shard: shardName(`s${i}`), term: ms }));
    child.sent.length = 0;
    await rig.advance(1);
  }
  const tookMs = performance.now() - startedMs;
  const received = toEast.sent.slice(from).filter(({ kind }) => kind === 'claim').length;
  t.log(
    `${received} claims to the other link for 100,000; ${Math.round(tookMs)} ms in all, and ${root.store.revisions.published} revisions`,
  );
  t.true(received <= 4_000);
  await rig.advance(1_000);
  await rig.advance(1_000);
  t.is(east.known.shard(shardName('s7'))?.term, 100);
});

for (const how of ['resync', 'claim'] as const)
  test(`a child that asks for a slice again and again gets it only at a bounded rate: by ${how}`, async (t) => {
    const rig = new TreeRig();
    const root = await rig.cache('root', {
      policies: { ...nothingUp, children: new Map([['*', { accept: aPolicy(), offer: everything }]]) },
    });
    t.teardown(() => root.stop());
    await mustPush(root.store.writer.lane(), [aClaim({ origin: root.store.cacheId }), ...aFullSync({}, [anUpsert()])]);
    const { child, end } = await scriptedChild(rig, root);
    const claim = claimSentTo({ end });
    child.send({ ...claim, isYours: true });
    for (let i = 0; i < 300; i++) {
      const numbers = end.sent.flatMap((frame) =>
        'sequence' in frame && frame.kind !== 'ack' && frame.kind !== 'refuse'
          ? [frame.sequence + (frame.kind === 'put' ? frame.objects.length - 1 : 0)]
          : [],
      );
      const sequence = numbers.at(-1);
      if (sequence !== undefined) child.send({ kind: 'ack', sequence, credit: { mutations: 200, bytes: 1_000_000 } });
      if (how === 'resync') child.send({ kind: 'resync', slice: exports, reason: 'please' });
      else for (const isYours of [false, true]) child.send({ ...claim, isYours });
      await rig.advance(10);
    }
    const begins = end.sent.filter(({ kind }) => kind === 'begin').length;
    t.log(`${begins} syncs in three seconds, ${byesOf(end).join()}`);
    t.true(begins > 0 && begins < 20);
  });

test.serial('the path that a child reported is forgotten once the child has left', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  t.teardown(() => root.stop());
  const { child } = await scriptedChild(rig, root);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;

  for (let at = 0; at < 2_000; at += 1) {
    const path = Array.from({ length: 64 }, (_, i) => Buffer.alloc(64, `${at} ${i} `).toString('latin1'));
    child.send(aClaimFrame({ shard: shardName(`s${at}`), path }));
    if (at % 100 === 99) await rig.settle();
    child.sent.length = 0;
  }
  await rig.settle();
  child.terminate();
  await rig.advance(5_000);
  for (const end of rig.connections.splice(0).flat()) end.sent.length = 0;
  collectGarbage();

  const grown = (process.memoryUsage().heapUsed - before) / (1024 * 1024);
  t.log(`${Math.round(grown)} MiB stay of 2,000 claims`);
  t.true(grown < 20);
});

largeTest('a child that reports ever more held slices is disconnected at the bound; a slice reported again counts once', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  t.teardown(() => root.stop());
  const { child, end } = await scriptedChild(rig, root);
  const report = async (frame: number): Promise<void> => {
    const slices = Array.from({ length: 1_000 }, (_, i) => aSlice({ identity: `i${frame}-${i}` }));
    child.send({ kind: 'resume', position: '', held: slices.map((slice) => ({ slice, filterHash: '', syncedTerm: 0 })), isLast: false });
    await rig.settle();
  };

  for (let again = 0; again < 2; again += 1) for (let frame = 0; frame < 200; frame += 1) await report(frame);
  t.deepEqual(byesOf(end), []);
  await report(200);

  t.deepEqual(byesOf(end), ['protocol']);
});

for (const isOpen of [false, true])
  largeTest(
    `a child that reports slices with names of 700 characters may fill at most 48 MiB, ${isOpen ? 'once its link is open' : 'while its link opens'}`,
    async (t) => {
      const rig = new TreeRig();
      const root = await rig.cache('root');
      t.teardown(() => root.stop());
      const { child, end } = await scriptedChild(rig, root, 'west', { hasOpened: isOpen });
      let frames = 0;
      for (; frames < 200 && byesOf(end).length === 0; frames += 1) {
        const slices = Array.from({ length: 1_000 }, (_, i) => aSlice({ identity: `${frames}-${i}-`.padEnd(700, 'x') }));
        child.send({
          kind: 'resume',
          position: '',
          held: slices.map((slice) => ({ slice, filterHash: '', syncedTerm: 0 })),
          isLast: false,
        });
        await rig.settle();
      }

      t.deepEqual(byesOf(end), ['protocol']);
      t.true(frames > 60 && frames < 75, `${frames} frames`);
    },
  );

test.serial('slices that a child reports to hold cost no more for a shard with a plain writer than for another one', async (t) => {
  const took: number[] = [];
  for (const plain of [false, true]) {
    const rig = new TreeRig();
    const root = await rig.cache('root');
    t.teardown(() => root.stop());
    if (plain) await root.store.writer.submit({ kind: 'put', key: aKey(), body: aBody(aKey()), path: undefined, expect: 'absent' });
    else await mustPush(root.store.writer.lane(), [aClaim({ origin: root.store.cacheId }), anUpsert()]);
    const { child, end } = await scriptedChild(rig, root);
    child.send({ ...claimSentTo({ end }), isYours: true });
    await rig.settle();
    const startedMs = processorMs();
    for (let frame = 0; frame < 30; frame += 1) {
      const slices = Array.from({ length: 1_000 }, (_, i) => aSlice({ identity: `i${frame}-${i}` }));
      child.send({ kind: 'resume', position: '', held: slices.map((slice) => ({ slice, filterHash: '', syncedTerm: 0 })), isLast: false });
    }
    await rig.settle();
    took.push(processorMs() - startedMs);
    t.deepEqual(byesOf(end), []);
  }

  t.log(`30,000 slices took ${took.map(Math.round).join(' and ')} ms of the processor`);
  t.true((took[1] ?? 0) < 4 * (took[0] ?? 0));
});

for (const count of [0, 10_000])
  test(`a child loses what its shard no longer has, even if another child reports ${count} slices that nobody knows`, async (t) => {
    const rig = new TreeRig();
    const former = await rig.cache('root');
    const before = await rig.cache('middle', { urls: ['root'] });
    const earlier = await rig.cache('leaf', { urls: ['middle'] });
    await mustPush(former.store.writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert()])]);
    await rig.advance(5_000);
    t.is(earlier.known.slice(exports)?.objects, 1);
    for (const { stop } of [earlier, before, former]) stop();

    const pushers = { ...alwaysThere, leavesOut: ({ resource }: Slice) => resource.resource === 'apiexports' };
    const root = await rig.cache('root', { pushers });
    const middle = await rig.cache('middle', { urls: ['root'] });
    await mustPush(root.store.writer.lane(), [aClaim({ term: 2_000 }), ...aFullSync({ resource: 'apiresourceschemas' }, [], 2_000)]);
    await rig.advance(5_000);
    const hostile = await scriptedChild(rig, middle);
    hostile.child.send({ ...claimSentTo(hostile), isYours: true });
    const held = Array.from({ length: count }, (_, i) => ({ slice: aSlice({ identity: `i${i}` }), filterHash: '', syncedTerm: 0 }));
    for (let at = 0; at < count; at += 1_000)
      hostile.child.send({ kind: 'resume', position: '', held: held.slice(at, at + 1_000), isLast: false });
    await rig.advance(5_000);
    const leaf = await rig.cache('leaf', { urls: ['middle'], disk: earlier.disk });
    t.teardown(() => [leaf, middle, root].forEach(({ stop }) => stop()));
    await rig.advance(60_000);

    t.is(leaf.known.slice(exports)?.objects, 0);
  });

largeTest('a repeated claim of a child costs the same, however many slices it reports to hold', async (t) => {
  const took: number[] = [];
  for (const frames of [0, 60]) {
    const rig = new TreeRig();
    const root = await rig.cache('root');
    t.teardown(() => root.stop());
    await mustPush(root.store.writer.lane(), [aClaim({ origin: root.store.cacheId }), anUpsert()]);
    const { child, end } = await scriptedChild(rig, root);
    const claim = { ...claimSentTo({ end }), isYours: true };
    child.send(claim);
    for (let frame = 0; frame < frames; frame += 1) {
      const slices = Array.from({ length: 1_000 }, (_, i) => aSlice({ identity: `i${frame}-${i}` }));
      child.send({ kind: 'resume', position: '', held: slices.map((slice) => ({ slice, filterHash: '', syncedTerm: 0 })), isLast: false });
      await rig.settle();
    }
    const startedMs = performance.now();
    for (let again = 0; again < 50; again += 1) child.send(claim);
    await rig.settle();
    took.push(performance.now() - startedMs);
    t.deepEqual(byesOf(end), []);
  }

  t.log(`50 claims took ${took.map(Math.round).join(' and ')} ms`);
  t.true((took[1] ?? 0) < 20 * Math.max(10, took[0] ?? 0));
});
