import test from 'ava';
import type { ExecutionContext } from 'ava';
import type { Push } from '../../src/domain/push.js';
import { childSide } from '../../src/domain/side.js';
import { MemoryDisk } from '../support/memory-disk.js';
import { shardName } from '../support/objects.js';
import { aClaim, aProcess, aSlice, aStatement, mustPush } from '../support/pushes.js';
import { aState } from './a-state.js';
import { aClaimFrame } from './a-claim-frame.js';
import { byesOf, TierRig, type RigCache } from './tier-rig.js';
import { Gate } from './gate.js';
import { claimToldTo, scriptedChild } from './scripted-child.js';

const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });
const amber = shardName('amber');

function ending(t: ExecutionContext, ...caches: readonly RigCache[]): void {
  t.teardown(() => caches.forEach(({ stop }) => stop()));
}

function claimAt({ store }: RigCache, incarnation = 1_000) {
  return aClaim({ incarnation, origin: store.cacheId });
}

function diskFrom(digit: number): MemoryDisk {
  return MemoryDisk.blank(() => digit / 16 + 0.01);
}

/** One more than a `resume` takes. */
const others = Array.from({ length: 1_001 }, (_, i) => `s${i}`);

for (const isSlow of [false, true]) {
  test(`${isSlow ? 'a child whose network is slow' : 'control: a child'} gets what is at its parent of an origin that is away`, async (t) => {
    const rig = new TierRig();
    const root = await rig.cache('root');
    const far = await rig.cache('far', { urls: ['root'] });
    const east = await rig.cache('east', { urls: ['root'] });
    await rig.settle();
    for (const shard of others) {
      const ofShard = aClaim({ shard, origin: root.store.cacheId });
      await mustPush(root.store.lane(), [ofShard, ...aStatement({ shard }, [])]);
    }
    await mustPush(far.store.lane(), [claimAt(far)]);
    for (let i = 0; i < 5; i++) await rig.advance(1_000);
    t.is(east.known.shard(amber)?.side, 'parent');
    t.true(others.every((shard) => east.known.isSynced(aSlice({ shard }))));
    east.stop();
    await rig.advance(1_000);
    await mustPush(far.store.lane(), aStatement({}, [aState()]));
    await rig.advance(1_000);
    t.true(root.known.isSynced(exports));
    far.stop();
    await rig.advance(1_000);

    if (isSlow) {
      const push = rig.connections.push.bind(rig.connections);
      rig.connections.push = (...pairs) => {
        for (const [child] of pairs) child.drained = () => new Promise((resolve) => rig.clock.after(50, resolve));
        return push(...pairs);
      };
    }
    const again = await rig.cache('east', { disk: east.disk, urls: ['root'], incarnation: 2_000 });
    ending(t, root, again);
    for (let i = 0; i < 20; i++) await rig.advance(60_000);

    t.is(again.known.slice(exports)?.objects, 1);
    t.true(again.known.isSynced(exports));
  });
}

test('a child that comes to another parent while the origin is away gets what that parent holds', async (t) => {
  const rig = new TierRig();
  const root = await rig.cache('root');
  const [one, two] = [await rig.cache('one', { urls: ['root'] }), await rig.cache('two', { urls: ['root'] })];
  const far = await rig.cache('far', { urls: ['root'] });
  const leaf = await rig.cache('leaf', { urls: ['one'] });
  await rig.settle();
  await mustPush(far.store.lane(), [claimAt(far), ...aStatement({}, [aState()])]);
  await rig.advance(1_000);
  t.is(leaf.known.slice(exports)?.objects, 1);
  leaf.stop();
  await rig.advance(1_000);
  await mustPush(far.store.lane(), [aState('two')]);
  await rig.advance(1_000);
  far.stop();
  await rig.advance(1_000);
  t.is(two.known.slice(exports)?.objects, 2);

  const moved = await rig.cache('leaf', { disk: leaf.disk, urls: ['two'], incarnation: 2_000 });
  ending(t, root, one, two, moved);
  for (let i = 0; i < 20; i++) await rig.advance(60_000);

  t.is(moved.known.shard(amber)?.side, 'parent');
  t.is(moved.known.slice(exports)?.objects, 2);
});

test('a shard that leaves a link and comes back to it in one commit becomes whole again', async (t) => {
  const rig = new TierRig();
  const gate = new Gate();
  const root = await rig.cache('root', { soon: gate.soon });
  const east = await rig.cache('east', { urls: ['root'] });
  const [first, second] = [await rig.cache('first', { urls: ['east'] }), await rig.cache('second', { disk: diskFrom(15), urls: ['east'] })];
  const west = await rig.cache('west', { disk: diskFrom(1), urls: ['root'] });
  ending(t, root, east, first, second, west);
  await rig.settle();
  const statement = aStatement({}, [aState()]);
  await mustPush(first.store.lane(), [claimAt(first), ...statement]);
  await rig.advance(5_000);
  t.true(root.known.isSynced(exports));

  // The pusher is brought to west for a moment, and at once to second; no clock and no incarnation is wrong.
  gate.shut();
  await mustPush(west.store.lane(), [claimAt(west)]);
  await rig.settle();
  const again: Push = { kind: 'acquire', shard: amber, process: aProcess(1_000), incarnation: 1_001, nowMs: 0 };
  await mustPush(second.store.lane(), [again, ...aStatement({}, [aState('one', { by: 1_002 })], 1_002)]);
  await rig.settle();
  gate.open();
  for (let i = 0; i < 120; i++) await rig.advance(60_000);

  t.is(root.known.shard(amber)?.side, childSide('east'));
  t.is(root.known.shard(amber)?.origin, second.store.cacheId);
  t.true(east.known.isSynced(exports));
  t.true(root.known.isSynced(exports));
});

test('what the other end holds is let go of though something is published between its resume and its claim', async (t) => {
  const rig = new TierRig();
  const root = await rig.cache('root');
  ending(t, root);
  const lane = root.store.lane();
  await mustPush(lane, [claimAt(root), ...aStatement({}, [aState()])]);
  const { child, end } = await scriptedChild(rig, root, 'east');
  const claim = claimToldTo({ end });
  const told = aClaimFrame({ ...claim, path: [...claim.path, 'id-of-east'] });

  child.send({ ...told, isYours: false });
  child.send({ kind: 'resume', position: '', held: [{ slice: schemas, edge: '', stated: 0 }], isLast: false });
  await rig.settle();
  // A new process has claimed it at root.
  await mustPush(lane, [aClaim({ incarnation: 2_000, origin: root.store.cacheId })]);
  await rig.settle();
  child.send({ ...told, isYours: true });
  child.send({ ...told, incarnation: 2_000, isYours: true });
  for (let i = 0; i < 20; i++) await rig.advance(60_000);

  t.true(end.sent.some((frame) => frame.kind === 'begin' && frame.slice.resource.resource === 'apiresourceschemas'));
});

test('an end that waited for credit does not count for the claim that overtook it', async (t) => {
  const rig = new TierRig();
  const gate = new Gate();
  const root = await rig.cache('root');
  const lane = root.store.lane();
  await mustPush(lane, [
    claimAt(root),
    ...aStatement(
      {},
      Array.from({ length: 199 }, (_, i) => aState(`n${i}`)),
    ),
  ]);
  const east = await rig.cache('east', { urls: ['root'], soon: gate.soon });
  ending(t, root, east);
  // Until the child has the claim, and nothing of the statement is committed.
  const isBegun = (): boolean => rig.connections.some(([, end]) => end.sent.some(({ kind }) => kind === 'begin'));
  for (let i = 0; i < 2_000 && !isBegun(); i++) await new Promise((resolve) => setImmediate(resolve));
  gate.shut();
  await rig.settle();
  t.false(rig.connections.some(([, end]) => end.sent.some(({ kind }) => kind === 'end')));

  await mustPush(lane, [claimAt(root, 2_000)]);
  await rig.settle();
  gate.open();
  await rig.advance(5_000);

  t.is(east.known.shard(amber)?.incarnation, 2_000);
  t.false(root.known.isSynced(exports));
  t.false(east.known.isSynced(exports));
});

test('an end that a later claim overtook counts for the claim it was given for, also where the shard has another slice in step', async (t) => {
  const rig = new TierRig();
  const gate = new Gate();
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'], soon: gate.soon });
  ending(t, root, east);
  const lane = root.store.lane();
  await mustPush(lane, [claimAt(root), ...aStatement({ resource: 'apiresourceschemas' }, [])]);
  await rig.advance(1_000);
  t.true(east.known.isSynced(schemas));
  gate.shut();
  const states = Array.from({ length: 199 }, (_, i) => aState(`n${i}`));
  await mustPush(lane, aStatement({}, states));
  await rig.settle();
  const sent = (): readonly string[] => rig.connections.flatMap(([, end]) => end.sent.map(({ kind }) => kind));
  const before = sent();
  t.is(before.filter((kind) => kind === 'end').length, 1);

  await mustPush(lane, [claimAt(root, 2_000)]);
  await rig.settle();
  gate.open();
  await rig.settle();

  t.deepEqual(
    sent()
      .slice(before.length)
      .filter((kind) => kind === 'claim' || kind === 'end'),
    ['claim', 'end'],
  );
  t.is(east.known.shard(amber)?.incarnation, 2_000);
  t.is(east.known.slice(exports)?.stated, 1_000);
  t.false(east.known.isSynced(exports));

  await mustPush(lane, aStatement({}, [], 2_000));
  await rig.advance(5_000);
  t.is(east.known.slice(exports)?.stated, 2_000);
  t.is(east.known.slice(exports)?.objects, 0);
  t.deepEqual(
    rig.connections.flatMap(([end]) => end.sent.filter(({ kind }) => kind === 'restate')),
    [],
  );
});

test('what was removed leaves, though the store could not take it at that moment', async (t) => {
  const rig = new TierRig();
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'] });
  ending(t, root, east);
  await mustPush(root.store.lane(), [claimAt(root), ...aStatement({}, [aState()])]);
  await rig.advance(1_000);
  t.is(east.known.slice(exports)?.objects, 1);
  east.store.follow(({ shards }) => {
    if (shards.some(({ removed }) => removed)) east.store.isDiskFull = true;
  });

  await root.store.lane().push([{ kind: 'clear', shard: amber, fence: true, nowMs: rig.clock.wallMs() }]);
  await rig.advance(1_000);
  t.true(east.known.shard(amber)?.removed);
  east.store.isDiskFull = false;
  for (let i = 0; i < 20; i++) await rig.advance(60_000);
  rig.connections.at(-1)?.[0].terminate();
  for (let i = 0; i < 20; i++) await rig.advance(60_000);

  t.is(east.known.slice(exports)?.objects ?? 0, 0);
});

test('a copy of a cache beside it makes plain shards rise at a pace, and says so', async (t) => {
  const rig = new TierRig();
  const root = await rig.cache('root');
  const [one, two] = [await rig.cache('one', { urls: ['root'] }), await rig.cache('two', { urls: ['root'] })];
  const disk = diskFrom(5);
  const state = { shard: amber, process: '', removed: false, origin: disk.cacheId, side: 'local', plain: true } as const;
  const copy = disk.copy();
  copy.shards.set(amber, { ...state, incarnation: 1 });
  // It was taken over since the copy was made.
  disk.shards.set(amber, { ...state, incarnation: 3 });
  const home = await rig.cache('home', { disk, urls: ['one'] });
  const other = await rig.cache('home', { disk: copy, urls: ['two'] });
  ending(t, root, one, two, home, other);
  const sides = new Set<string>();
  let flips = 0;
  root.store.follow(({ shards }) => {
    for (const { side } of shards) sides.add(side ?? 'nobody');
    flips += shards.length;
  });
  for (let i = 0; i < 300; i++) await rig.advance(200);
  const after = home.known.shard(amber)?.incarnation ?? 0;
  for (let i = 0; i < 300; i++) await rig.advance(200);

  t.log(
    `${after}, and ${home.known.shard(amber)?.incarnation} a minute later; root has had it ${flips} times from ${[...sides].join(' ')}`,
  );
  t.true((home.known.shard(amber)?.incarnation ?? 0) - after <= 2 * 7);
  t.true(home.logged.some(({ event }) => event === 'link.own-claim-not-remembered'));
});

test('a shard that is nobody’s since the parent’s parent is another cache is not taken for connected', async (t) => {
  const rig = new TierRig();
  const top = await rig.cache('top');
  const middle = await rig.cache('middle', { urls: ['top'] });
  const leaf = await rig.cache('leaf', { urls: ['middle'] });
  await rig.settle();
  await mustPush(top.store.lane(), [claimAt(top), ...aStatement({}, [aState()])]);
  for (let i = 0; i < 4; i++) await rig.advance(5_000);
  t.true(leaf.tier.freshnessOf(exports).connected);

  top.stop();
  const another = await rig.cache('top', { disk: diskFrom(9) });
  ending(t, another, middle, leaf);
  for (let i = 0; i < 40; i++) await rig.advance(20);
  t.is(middle.known.shard(amber)?.side, undefined);
  for (let i = 0; i < 60; i++) await rig.advance(60_000);

  t.is(middle.tier.parent?.kind, 'open');
  t.is(middle.known.shard(amber)?.side, undefined);
  const awayMs = rig.clock.now() - leaf.tier.seenMs(amber, 'parent');
  t.log(`connected: ${leaf.tier.freshnessOf(exports).connected}; seen ${awayMs} ms ago`);
  t.true(awayMs > 1_800_000, 'a plain writer never takes it over');
  t.false(leaf.tier.freshnessOf(exports).connected);
});

test('a link over which a shard came and went 201 times is not cut off for what it told in all', async (t) => {
  const rig = new TierRig();
  const root = await rig.cache('root');
  ending(t, root);
  await mustPush(root.store.lane(), [claimAt(root), ...aStatement({}, [aState()])]);
  const { child, end } = await scriptedChild(rig, root, 'east');
  const claim = claimToldTo({ end });
  const held = Array.from({ length: 1_000 }, (_, i) => ({ slice: aSlice({ resource: `r${i}` }), edge: '', stated: 0 }));

  for (let i = 0; i < 201; i++) {
    child.send({ ...claim, isYours: false });
    child.send({ kind: 'resume', position: '', held, isLast: false });
    child.send({ ...claim, isYours: true });
    await rig.advance(60_000);
  }

  t.deepEqual(byesOf(end), []);
});

test('a child that is there and acknowledges nothing is sent away after a minute, to come back', async (t) => {
  const rig = new TierRig();
  const root = await rig.cache('root');
  ending(t, root);
  await mustPush(root.store.lane(), [claimAt(root), ...aStatement({}, [aState()])]);
  const { child, end } = await scriptedChild(rig, root, 'east', { acknowledges: false });
  const claim = claimToldTo({ end });
  child.send({ ...claim, path: [...claim.path, 'id-of-east'], isYours: true });

  await rig.advance(50_000);
  t.deepEqual(byesOf(end), []);
  await rig.advance(20_000);

  t.deepEqual(byesOf(end), ['timeout']);
});

test('freshness is reported to be all of it once the other end has said of every shard whether it has it from here', async (t) => {
  const rig = new TierRig();
  const root = await rig.cache('root');
  ending(t, root);
  await mustPush(root.store.lane(), [claimAt(root), ...aStatement({}, [aState()])]);
  const { child, end } = await scriptedChild(rig, root, 'east');
  for (let i = 0; i < 4; i++) await rig.advance(5_000);
  const told = () => end.sent.flatMap((frame) => (frame.kind === 'report' ? [[frame.freshness.length, frame.isAll]] : []));
  t.deepEqual(told(), []);

  const claim = claimToldTo({ end });
  child.send({ ...claim, path: [...claim.path, 'id-of-east'], isYours: true });
  await rig.settle();

  t.deepEqual(told(), [[1, true]]);
});
