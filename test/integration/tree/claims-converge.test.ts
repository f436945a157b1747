import { setImmediate } from 'node:timers';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { ExecutionContext } from 'ava';
import type { Push } from '../../../src/domain/push.js';
import { childNeighbour } from '../../../src/domain/via.js';
import { MemoryDisk } from '../../support/store/memory-disk.js';
import { mustWrite } from '../../contract/read-all.js';
import { aPut, shardName } from '../../support/objects.js';
import { aClaim, aProcess, aSlice, aFullSync, mustPush } from '../../support/pushes.js';
import { anUpsert } from './an-upsert.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';
import { byesOf, TreeRig, type RigCache } from './tree-rig.js';
import { Gate } from './gate.js';
import { claimSentTo, scriptedChild } from './scripted-child.js';

const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });
const amber = shardName('amber');

function ending(t: ExecutionContext, ...caches: readonly RigCache[]): void {
  t.teardown(() => caches.forEach(({ stop }) => stop()));
}

function claimAt({ store }: RigCache, term = 1_000) {
  return aClaim({ term, origin: store.cacheId });
}

function diskFrom(digit: number): MemoryDisk {
  return MemoryDisk.blank(() => digit / 16 + 0.01);
}

/** One more than fits into a `resume`. */
const others = Array.from({ length: 1_001 }, (_, i) => `s${i}`);

for (const isSlow of [false, true]) {
  largeTest(
    `${isSlow ? 'a child with a slow network' : 'control: a child'} gets the objects that its parent has of an origin that is away`,
    async (t) => {
      const rig = new TreeRig();
      const root = await rig.cache('root');
      const far = await rig.cache('far', { urls: ['root'] });
      const east = await rig.cache('east', { urls: ['root'] });
      await rig.settle();
      for (const shard of others) {
        const ofShard = aClaim({ shard, origin: root.store.cacheId });
        await mustPush(root.store.writer.lane(), [ofShard, ...aFullSync({ shard }, [])]);
      }
      await mustPush(far.store.writer.lane(), [claimAt(far)]);
      for (let i = 0; i < 5; i++) await rig.advance(1_000);
      t.is(east.known.shard(amber)?.via, 'parent');
      t.true(others.every((shard) => east.known.isSynced(aSlice({ shard }))));
      east.stop();
      await rig.advance(1_000);
      await mustPush(far.store.writer.lane(), aFullSync({}, [anUpsert()]));
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
      const again = await rig.cache('east', { disk: east.disk, urls: ['root'], term: 2_000 });
      ending(t, root, again);
      for (let i = 0; i < 20; i++) await rig.advance(60_000);

      t.is(again.known.slice(exports)?.objects, 1);
      t.true(again.known.isSynced(exports));
    },
  );
}

test('a child that moves to another parent while the origin is away gets what that parent has', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const [one, two] = [await rig.cache('one', { urls: ['root'] }), await rig.cache('two', { urls: ['root'] })];
  const far = await rig.cache('far', { urls: ['root'] });
  const leaf = await rig.cache('leaf', { urls: ['one'] });
  await rig.settle();
  await mustPush(far.store.writer.lane(), [claimAt(far), ...aFullSync({}, [anUpsert()])]);
  await rig.advance(1_000);
  t.is(leaf.known.slice(exports)?.objects, 1);
  leaf.stop();
  await rig.advance(1_000);
  await mustPush(far.store.writer.lane(), [anUpsert('two')]);
  await rig.advance(1_000);
  far.stop();
  await rig.advance(1_000);
  t.is(two.known.slice(exports)?.objects, 2);

  const moved = await rig.cache('leaf', { disk: leaf.disk, urls: ['two'], term: 2_000 });
  ending(t, root, one, two, moved);
  for (let i = 0; i < 20; i++) await rig.advance(60_000);

  t.is(moved.known.shard(amber)?.via, 'parent');
  t.is(moved.known.slice(exports)?.objects, 2);
});

largeTest('a slice of a shard that leaves a link and returns to it in one commit becomes current again', async (t) => {
  const rig = new TreeRig();
  const gate = new Gate();
  const root = await rig.cache('root', { soon: gate.soon });
  const east = await rig.cache('east', { urls: ['root'] });
  const [first, second] = [await rig.cache('first', { urls: ['east'] }), await rig.cache('second', { disk: diskFrom(15), urls: ['east'] })];
  const west = await rig.cache('west', { disk: diskFrom(1), urls: ['root'] });
  ending(t, root, east, first, second, west);
  await rig.settle();
  const sync = aFullSync({}, [anUpsert()]);
  await mustPush(first.store.writer.lane(), [claimAt(first), ...sync]);
  await rig.advance(5_000);
  t.true(root.known.isSynced(exports));

  // The pusher moves to west for a moment and then to second. All clocks and terms are correct.
  gate.shut();
  await mustPush(west.store.writer.lane(), [claimAt(west)]);
  await rig.settle();
  const again: Push = { kind: 'acquire', shard: amber, process: aProcess(1_000), term: 1_001, nowMs: 0 };
  await mustPush(second.store.writer.lane(), [again, ...aFullSync({}, [anUpsert('one', { by: 1_002 })], 1_002)]);
  await rig.settle();
  gate.open();
  for (let i = 0; i < 120; i++) await rig.advance(60_000);

  t.is(root.known.shard(amber)?.via, childNeighbour('east'));
  t.is(root.known.shard(amber)?.origin, second.store.cacheId);
  t.true(east.known.isSynced(exports));
  t.true(root.known.isSynced(exports));
});

test('objects that only the other end has are swept, even if a commit is published between its resume and its claim', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  ending(t, root);
  const lane = root.store.writer.lane();
  await mustPush(lane, [claimAt(root), ...aFullSync({}, [anUpsert()])]);
  const { child, end } = await scriptedChild(rig, root, 'east');
  const claim = claimSentTo({ end });
  const received = aClaimFrame({ ...claim, path: [...claim.path, 'id-of-east'] });

  child.send({ ...received, isYours: false });
  child.send({ kind: 'resume', position: '', held: [{ slice: schemas, filterHash: '', syncedTerm: 0 }], isLast: false });
  await rig.settle();
  // A new process claims amber at root.
  await mustPush(lane, [aClaim({ term: 2_000, origin: root.store.cacheId })]);
  await rig.settle();
  child.send({ ...received, isYours: true });
  child.send({ ...received, term: 2_000, isYours: true });
  for (let i = 0; i < 20; i++) await rig.advance(60_000);

  t.true(end.sent.some((frame) => frame.kind === 'begin' && frame.slice.resource.resource === 'apiresourceschemas'));
});

test('an end that waited for credit does not count for a claim that was sent before it', async (t) => {
  const rig = new TreeRig();
  const gate = new Gate();
  const root = await rig.cache('root');
  const lane = root.store.writer.lane();
  await mustPush(lane, [
    claimAt(root),
    ...aFullSync(
      {},
      Array.from({ length: 199 }, (_, i) => anUpsert(`n${i}`)),
    ),
  ]);
  const east = await rig.cache('east', { urls: ['root'], soon: gate.soon });
  ending(t, root, east);
  // Waits until the child has the claim, but nothing of the sync is committed.
  const isBegun = (): boolean => rig.connections.some(([, end]) => end.sent.some(({ kind }) => kind === 'begin'));
  for (let i = 0; i < 2_000 && !isBegun(); i++) await new Promise((resolve) => setImmediate(resolve));
  gate.shut();
  await rig.settle();
  t.false(rig.connections.some(([, end]) => end.sent.some(({ kind }) => kind === 'end')));

  await mustPush(lane, [claimAt(root, 2_000)]);
  await rig.settle();
  gate.open();
  await rig.advance(5_000);

  t.is(east.known.shard(amber)?.term, 2_000);
  t.false(root.known.isSynced(exports));
  t.false(east.known.isSynced(exports));
});

test('an end that a later claim overtook counts for its own claim, even if another slice of the shard is current', async (t) => {
  const rig = new TreeRig();
  const gate = new Gate();
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'], soon: gate.soon });
  ending(t, root, east);
  const lane = root.store.writer.lane();
  await mustPush(lane, [claimAt(root), ...aFullSync({ resource: 'apiresourceschemas' }, [])]);
  await rig.advance(1_000);
  t.true(east.known.isSynced(schemas));
  gate.shut();
  const states = Array.from({ length: 199 }, (_, i) => anUpsert(`n${i}`));
  await mustPush(lane, aFullSync({}, states));
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
  t.is(east.known.shard(amber)?.term, 2_000);
  t.is(east.known.slice(exports)?.syncedTerm, 1_000);
  t.false(east.known.isSynced(exports));

  await mustPush(lane, aFullSync({}, [], 2_000));
  await rig.advance(5_000);
  t.is(east.known.slice(exports)?.syncedTerm, 2_000);
  t.is(east.known.slice(exports)?.objects, 0);
  t.deepEqual(
    rig.connections.flatMap(([end]) => end.sent.filter(({ kind }) => kind === 'resync')),
    [],
  );
});

test('the objects of a removed shard leave, even if the store could not commit the removal at first', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'] });
  ending(t, root, east);
  await mustPush(root.store.writer.lane(), [claimAt(root), ...aFullSync({}, [anUpsert()])]);
  await rig.advance(1_000);
  t.is(east.known.slice(exports)?.objects, 1);
  east.store.state.follow(({ shards }) => {
    if (shards.some(({ removed }) => removed)) east.store.isDiskFull = true;
  });

  await root.store.writer.lane().push([{ kind: 'clear', shard: amber, fence: true, nowMs: rig.clock.wallMs() }]);
  await rig.advance(1_000);
  t.true(east.known.shard(amber)?.removed);
  east.store.isDiskFull = false;
  for (let i = 0; i < 20; i++) await rig.advance(60_000);
  rig.connections.at(-1)?.[0].terminate();
  for (let i = 0; i < 20; i++) await rig.advance(60_000);

  t.is(east.known.slice(exports)?.objects ?? 0, 0);
});

test('a copy of a cache beside the original raises the terms of plain shards only at a bounded rate, and a cache logs it', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const [one, two] = [await rig.cache('one', { urls: ['root'] }), await rig.cache('two', { urls: ['root'] })];
  const disk = diskFrom(5);
  const former = disk.open({ clock: rig.clock, soon: setImmediate, random: () => 0.5 });
  const first = await mustWrite(former, aPut({}, 'absent'));
  const copy = disk.copy();
  // After the copy was made, a parent had the shard for a while, and a plain writer then took it
  // over.
  await mustPush(former.writer.lane(), [{ kind: 'meet', neighbour: 'parent', cacheId: 'far' }, aClaim({ term: 2, via: 'parent' })]);
  await mustWrite(former, { ...aPut({}, first.revision), takes: true });
  await mustPush(former.writer.lane(), [{ kind: 'leave', neighbour: 'parent' }]);
  t.deepEqual(
    [...former.state.shards].map(({ shard, term, plain }) => [shard, term, plain]),
    [[amber, 3, true]],
  );
  await former.close();
  const plainWrites = await rig.cache('home', { disk, urls: ['one'] });
  const other = await rig.cache('home', { disk: copy, urls: ['two'] });
  ending(t, root, one, two, plainWrites, other);
  const vias = new Set<string>();
  let flips = 0;
  root.store.state.follow(({ shards }) => {
    for (const { via } of shards) vias.add(via ?? 'nobody');
    flips += shards.length;
  });
  for (let i = 0; i < 300; i++) await rig.advance(200);
  const after = plainWrites.known.shard(amber)?.term ?? 0;
  for (let i = 0; i < 300; i++) await rig.advance(200);

  t.log(`${after}, and ${plainWrites.known.shard(amber)?.term} a minute later; root has had it ${flips} times from ${[...vias].join(' ')}`);
  t.true((plainWrites.known.shard(amber)?.term ?? 0) - after <= 2 * 7);
  t.true(plainWrites.logged.some(({ event }) => event === 'link.own-claim-unknown'));
});

test('a shard that nobody has had since the parent’s parent changed does not count as connected', async (t) => {
  const rig = new TreeRig();
  const top = await rig.cache('top');
  const middle = await rig.cache('middle', { urls: ['top'] });
  const leaf = await rig.cache('leaf', { urls: ['middle'] });
  await rig.settle();
  await mustPush(top.store.writer.lane(), [claimAt(top), ...aFullSync({}, [anUpsert()])]);
  for (let i = 0; i < 4; i++) await rig.advance(5_000);
  t.true(leaf.tree.freshnessOf(exports).connected);

  top.stop();
  const another = await rig.cache('top', { disk: diskFrom(9) });
  ending(t, another, middle, leaf);
  for (let i = 0; i < 40; i++) await rig.advance(20);
  t.is(middle.known.shard(amber)?.via, undefined);
  for (let i = 0; i < 60; i++) await rig.advance(60_000);

  t.is(middle.tree.parent?.kind, 'open');
  t.is(middle.known.shard(amber)?.via, undefined);
  const awayMs = rig.clock.now() - leaf.tree.seenMs(amber, 'parent');
  t.log(`connected: ${leaf.tree.freshnessOf(exports).connected}; seen ${awayMs} ms ago`);
  t.true(awayMs > 1_800_000, 'a plain writer never takes it over');
  t.false(leaf.tree.freshnessOf(exports).connected);
});

largeTest('a link over which a shard came and went 201 times is not closed for the total that it sent', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  ending(t, root);
  await mustPush(root.store.writer.lane(), [claimAt(root), ...aFullSync({}, [anUpsert()])]);
  const { child, end } = await scriptedChild(rig, root, 'east');
  const claim = claimSentTo({ end });
  const held = Array.from({ length: 1_000 }, (_, i) => ({ slice: aSlice({ resource: `r${i}` }), filterHash: '', syncedTerm: 0 }));

  for (let i = 0; i < 201; i++) {
    child.send({ ...claim, isYours: false });
    child.send({ kind: 'resume', position: '', held, isLast: false });
    child.send({ ...claim, isYours: true });
    await rig.advance(60_000);
  }

  t.deepEqual(byesOf(end), []);
});

test('a connected child that acknowledges nothing is disconnected after a minute, and may reconnect', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  ending(t, root);
  await mustPush(root.store.writer.lane(), [claimAt(root), ...aFullSync({}, [anUpsert()])]);
  const { child, end } = await scriptedChild(rig, root, 'east', { acknowledges: false });
  const claim = claimSentTo({ end });
  child.send({ ...claim, path: [...claim.path, 'id-of-east'], isYours: true });

  await rig.advance(50_000);
  t.deepEqual(byesOf(end), []);
  await rig.advance(20_000);

  t.deepEqual(byesOf(end), ['timeout']);
});

test('freshness is reported as complete once the other end has decided about every shard whether to claim it back', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  ending(t, root);
  await mustPush(root.store.writer.lane(), [claimAt(root), ...aFullSync({}, [anUpsert()])]);
  const { child, end } = await scriptedChild(rig, root, 'east');
  for (let i = 0; i < 4; i++) await rig.advance(5_000);
  const received = () => end.sent.flatMap((frame) => (frame.kind === 'report' ? [[frame.freshness.length, frame.isAll]] : []));
  t.deepEqual(received(), []);

  const claim = claimSentTo({ end });
  child.send({ ...claim, path: [...claim.path, 'id-of-east'], isYours: true });
  await rig.settle();

  t.deepEqual(received(), [[1, true]]);
});
