/**
 * Pushes that need a look into the SQLite engine: batches that fail, removals cut short, stores
 * that were rolled back.
 */
import { sweepDeletesMax } from '../../../src/store/batch-item.js';
import { copyFileSync, rmSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Push } from '../../../src/domain/push.js';
import { childNeighbour } from '../../../src/domain/via.js';
import { Receiver } from '../../../src/intake/push/receiver.js';
import { Committer } from '../../../src/store/sqlite/committer.js';
import { openWriter } from '../../../src/store/sqlite/database.js';
import type { SqliteStore } from '../../../src/store/sqlite/store.js';
import { list, mustWrite } from '../../contract/read-all.js';
import { aPusherContext, begin, clusterBegin, clusterEnd, end, pushed, put } from '../../support/intake/a-receiver.js';
import { aKey, aPut, aScope } from '../../support/objects.js';
import {
  aBegin,
  aClaim,
  aClear,
  aDrop,
  aKeep,
  aMeet,
  anEnd,
  aReach,
  aRetract,
  anUpsert,
  aFullSync,
  firstTerm,
  mustPush,
  outcomeTexts,
} from '../../support/pushes.js';
import { until } from '../../support/test-server.js';
import { aWritingHalf, dump, type WritingHalf } from '../../support/store/a-database.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';

const states = (count: number): readonly Push[] =>
  Array.from({ length: count }, (_, i) => anUpsert({ name: `n${String(i).padStart(4, '0')}` }));

/** A push that SQLite refuses. */
function spoiled(by: Parameters<typeof anUpsert>[2] = firstTerm, shard = 'amber'): Push {
  const state = anUpsert({ name: 'spoiled', shard }, {}, by);
  if (state.kind !== 'upsert') throw new Error('the push is no upsert');
  return { ...state, body: { ...state.body, marks: { ...state.body.marks, revisionAt: 0.5 } } };
}

/** Commits to the files of a closed store, like a process that dies right afterwards. */
function commitOnce(engine: SqliteEngine, push: Push): void {
  const database = openWriter(engine.file('strata.db'));
  new Committer(database, { momentIntervalMs: 60_000, keptNames: new Map() }).commit([push], 1_000_000);
  database.close();
}

test('a failed batch leaves claims, counts and syncs as before it: an end after it is refused as not begun', async (t) => {
  const { store } = await SqliteEngine.start(t);
  const lane = store.writer.lane();
  await mustPush(lane, [aClaim(), anUpsert({ name: 'a' }), anUpsert({ name: 'b' }), aBegin(), aKeep({ name: 'a' })]);
  const [shards, slices] = [[...store.state.shards], [...store.state.slices]];

  const failing = [aClaim('cedar'), anUpsert({ shard: 'cedar' }), anUpsert({ name: 'c' }), aKeep({ name: 'b' }), spoiled()];
  const outcomes = await lane.push(failing);

  t.true(outcomes.every(({ kind }) => kind === 'unavailable'));
  t.deepEqual([[...store.state.shards], [...store.state.slices]], [shards, slices]);
  t.deepEqual(outcomeTexts(await lane.push([anUpsert({ name: 'c' })])), ['unavailable']);
  t.deepEqual(outcomeTexts(await store.writer.lane().push([anEnd(), anUpsert({ shard: 'cedar' }), anUpsert({ name: 'c' })])), [
    'unbegun',
    'fenced by 0',
    'written',
  ]);
  t.is([...store.state.slices][0]?.objects, 3);
  t.deepEqual(
    (await list(store, aScope())).map(({ key }) => key.name),
    ['a', 'b', 'c'],
  );
});

/**
 * A pusher has synced two objects and then syncs their logical cluster without the second. In
 * between, `fail` makes the batch of another lane fail.
 */
async function syncedBeside(t: ExecutionContext, fail: (store: SqliteStore) => Promise<unknown>) {
  const { store } = await SqliteEngine.start(t);
  const lane = store.writer.lane();
  await mustPush(lane, [aClaim()]);
  const sent: string[] = [];
  const context = aPusherContext({ by: { kind: 'pusher', term: firstTerm } });
  const receiver = new Receiver({
    lane,
    turn: () => Promise.resolve(),
    metrics: { pushes: { add: () => {}, total: () => 0, forget: () => {} } },
    context: () => context,
    run: (effect) => void (effect.kind === 'send' && sent.push(effect.frame.kind)),
    terminate: () => t.fail(),
  });
  for (const frame of [begin(1), put(2, [pushed('one'), pushed('gone')]), end(4, 2), clusterBegin(5)]) await receiver.accept(frame);
  await receiver.decided;
  t.is([...store.state.slices][0]?.syncedTerm, firstTerm);
  await fail(store);
  for (const frame of [put(6, [pushed('one')]), clusterEnd(7, 1)]) await receiver.accept(frame);
  await receiver.decided;
  await receiver.close();
  const objects = await list(store, aScope());
  return { sent, names: objects.map(({ key }) => key.name), syncedTerm: [...store.state.slices][0]?.syncedTerm };
}

test('a failed batch of one pusher does not affect the syncs of others', async (t) => {
  const { sent, names, syncedTerm } = await syncedBeside(t, async (store) => {
    const outcomes = await store.writer.lane().push([aClaim('cedar'), spoiled(firstTerm, 'cedar')]);
    t.deepEqual(outcomeTexts(outcomes), ['unavailable', 'unavailable']);
  });

  t.false(sent.includes('resync'));
  t.deepEqual(names, ['one']);
  t.is(syncedTerm, firstTerm);
});

test('a slice counts as not synced once a failed batch has cancelled the sync of one of its logical clusters', async (t) => {
  const { sent, names, syncedTerm } = await syncedBeside(t, async (store) => {
    const bad = aPut({ name: 'bad' }, 'absent');
    const spoilt = { ...bad, body: { ...bad.body, marks: { ...bad.body.marks, revisionAt: 0.5 } } };
    const outcomes = await Promise.all([store.writer.submit(aPut({ name: 'plain' }, 'absent')), store.writer.submit(spoilt)]);
    t.true(outcomes.every(({ kind }) => kind === 'unavailable'));
  });

  t.true(sent.includes('resync'));
  t.deepEqual(names, ['gone', 'one'], 'it removes nothing');
  t.is(syncedTerm, 0);
});

test('a failed batch leaves neighbours, links, current slices and digests as before it', async (t) => {
  const { store } = await SqliteEngine.start(t);
  const lane = store.writer.lane();
  const known = () => ({ shards: [...store.state.shards], slices: [...store.state.slices], links: [...store.state.links] });
  await mustPush(lane, [aMeet('p1'), aReach('7'), aClaim({ via: 'parent' }), aClaim('birch')]);
  await mustPush(lane, aFullSync({}, [anUpsert({}, {}, 'parent')], 'parent', 'filter-1'));
  const before = known();

  const failing = [
    aMeet('p2'),
    aReach('9'),
    aMeet('e1', childNeighbour('eu')),
    aClaim({ via: 'parent' }),
    aRetract({}, 'parent'),
    aBegin({}, 'parent'),
    spoiled('parent'),
  ];
  const outcomes = await lane.push([aClaim('birch', 2_000), ...failing, aClaim({ via: 'parent', term: 2_000 })]);

  t.true(outcomes.every(({ kind }) => kind === 'unavailable'));
  t.deepEqual(known(), before);
  const received = await lane.push([
    aMeet('e1', childNeighbour('us')),
    aReach('8'),
    anEnd({}, 'parent', 'filter-1'),
    aClaim('birch'),
    aClaim({ term: 999 }),
  ]);
  t.deepEqual(outcomeTexts(received), ['unchanged', 'unchanged', 'swept 0', 'acquired', 'fenced by 1000']);
  t.like([...store.state.slices][0], { digest: before.slices[0]?.digest, filterHash: 'filter-1' });
});

test('a sweep that a failure cuts short reports that, and what it has removed stays removed', async (t) => {
  const { store } = await SqliteEngine.start(t);
  const lane = store.writer.lane();
  await mustPush(lane, [aClaim(), ...states(3 * sweepDeletesMax), aBegin()]);
  const other = store.writer.lane();

  const ended = lane.push([anEnd(), anUpsert({ name: 'behind' })]);
  await new Promise<void>((resolve) => {
    const subscription = store.commits.subscribe(() => {
      subscription.cancel();
      void other.push([spoiled()]);
      resolve();
    });
  });

  t.deepEqual(outcomeTexts(await ended), ['unavailable', 'unavailable']);
  t.is((await list(store, aScope())).length, 2 * sweepDeletesMax);
});

test('after a push that was not stored, no push of its lane is stored until its writer starts over', async (t) => {
  const { store } = await SqliteEngine.start(t);
  const lane = store.writer.lane();
  await mustPush(lane, [aMeet('root'), aClaim(), aReach('7')]);

  const failing = lane.push([anUpsert(), spoiled()]);
  const behind = lane.push([aReach('8')]);
  const outcomes = [...(await failing), ...(await behind), ...(await lane.push([aReach('9')]))];

  t.deepEqual(outcomeTexts(outcomes), ['unavailable', 'unavailable', 'unavailable', 'unavailable']);
  t.is([...store.state.links][0]?.position, '7');
  t.deepEqual(outcomeTexts(await lane.push([aMeet('root'), aReach('9')])), ['unchanged', 'unchanged']);
  t.is([...store.state.links][0]?.position, '9');
});

test('the end of a small slice is complete in its commit, whatever else that commit contains', (t) => {
  const { commit } = aWritingHalf(t);
  const count = sweepDeletesMax + 100;

  const { decided } = commit(aClaim(), ...states(count), aBegin(), anEnd(), aBegin({ resource: 'others' }), anEnd({ resource: 'others' }));

  t.deepEqual(decided.slice(-4), [
    { kind: 'unchanged' },
    { kind: 'swept', removed: count },
    { kind: 'unchanged' },
    { kind: 'swept', removed: 0 },
  ]);
});

test('a step of a sweep deletes and reads no more keys than its bounds', (t) => {
  const { commit } = aWritingHalf(t);
  const kept = 5_000;
  commit(aClaim(), ...states(kept + 2 * sweepDeletesMax));
  commit(aBegin(), ...states(kept).map((push) => ('key' in push ? aKeep({ name: push.key.name }) : push)));
  const end = anEnd();
  if (end.kind !== 'end') throw new Error('the push is no end');

  const steps: string[] = [];
  for (let decided = commit(end).decided[0]; ; decided = commit({ kind: 'resume', push: end, walk: decided.walk }).decided[0]) {
    if (decided?.kind !== 'partial' && decided?.kind !== 'swept') throw new Error(`decided ${decided?.kind}`);
    steps.push(`${decided.kind} ${decided.removed}`);
    if (decided.kind === 'swept') break;
  }

  t.deepEqual(steps, ['partial 0', 'partial 0', `partial ${sweepDeletesMax}`, `swept ${sweepDeletesMax}`]);
});

/**
 * Runs the first step of a removal. The result resumes it until it is complete, and returns how
 * many more it removed.
 */
function firstStep({ commit }: WritingHalf, push: Push): () => number {
  if (push.kind !== 'clear' && push.kind !== 'drop') throw new Error('a removal is a clear or a drop');
  const [first] = commit(push).decided;
  if (first?.kind !== 'partial') throw new Error(`decided ${first?.kind}`);
  return () => {
    let removed = 0;
    for (;;) {
      const [decided] = commit({ kind: 'resume', push, walk: first.walk }).decided;
      if (decided?.kind !== 'partial' && decided?.kind !== 'swept') throw new Error(`decided ${decided?.kind}`);
      removed += decided.removed;
      if (decided.kind === 'swept') return removed;
    }
  };
}

const heldNames = ({ database }: WritingHalf, shard: string): unknown[] =>
  database.prepare(`SELECT name FROM objects WHERE shard = ? ORDER BY name`).pluck().all(shard);

for (const [title, removal] of [
  ['shard', aClear('amber', { fence: false })],
  ['type', aDrop()],
] as const)
  test(`the removal of a ${title} continues after a failed commit, and spares what was synced since it began`, (t) => {
    const half = aWritingHalf(t);
    const { commit } = half;
    const name = `n${String(2 * sweepDeletesMax - 1).padStart(4, '0')}`;
    commit(aClaim(), aClaim('birch'), ...states(2 * sweepDeletesMax), anUpsert({ shard: 'birch', name, resource: 'others' }));
    const goOn = firstStep(half, removal);

    t.throws(() => commit(anUpsert({ name: 'lost' }), spoiled()), { any: true, code: 'SQLITE_CONSTRAINT_DATATYPE' });
    commit(aClaim('amber', 2_000), aBegin({}, 2_000), anUpsert({ name: 'n0000' }, {}, 2_000), anEnd({ resource: 'others' }, 2_000));
    t.is(commit(aKeep({ name }, 2_000)).decided[0]?.kind, 'unchanged');

    t.is(goOn(), sweepDeletesMax - 1);
    t.deepEqual(heldNames(half, 'amber'), ['n0000', name]);
  });

test('a rewrite in a failed commit does not mark the objects that later get its revisions', (t) => {
  const half = aWritingHalf(t);
  const { commit } = half;
  commit(aClaim(), aClaim('birch'), ...states(2 * sweepDeletesMax), anUpsert({ shard: 'birch', name: 'n0511' }));
  const goOn = firstStep(half, aClear('amber', { fence: false }));

  t.throws(() => commit(aRetract({ shard: 'birch', name: 'n0511' }), spoiled()), {
    any: true,
    code: 'SQLITE_CONSTRAINT_DATATYPE',
  });
  commit(anUpsert({ name: 'x' }), anUpsert({ name: 'y' }), anUpsert({ name: 'z' }));

  t.is(goOn(), sweepDeletesMax);
  t.deepEqual(heldNames(half, 'amber'), ['x', 'y', 'z']);
});

test('a removal in a failed commit has not begun, and cannot be resumed', (t) => {
  const { commit } = aWritingHalf(t);
  commit(aClaim(), ...states(2 * sweepDeletesMax));
  const push = aClear('amber', { fence: false });
  if (push.kind !== 'clear') throw new Error('the push is no clear');

  t.throws(() => commit(push, spoiled()), { any: true, code: 'SQLITE_CONSTRAINT_DATATYPE' });

  t.is(commit({ kind: 'resume', push, walk: 1 }).decided[0]?.kind, 'unbegun');
  t.is(commit(push).decided[0]?.kind, 'partial');
});

test('a resumed end does not continue the walk of another sync', (t) => {
  const { commit } = aWritingHalf(t);
  commit(aClaim(), ...states(3 * sweepDeletesMax));
  const end = anEnd();
  if (end.kind !== 'end') throw new Error('the push is no end');
  const [first] = commit(aBegin(), end).decided.slice(-1);
  const [second] = commit(aBegin(), end).decided.slice(-1);
  if (first?.kind !== 'partial' || second?.kind !== 'partial') throw new Error('both must be incomplete');

  t.is(commit({ kind: 'resume', push: end, walk: first.walk }).decided[0]?.kind, 'unbegun');
  t.is(commit({ kind: 'resume', push: end, walk: second.walk }).decided[0]?.kind, 'swept');
});

test('a commit of pushes that change nothing writes nothing', (t) => {
  const { commit, database } = aWritingHalf(t);
  commit(aClaim(), ...aFullSync({}, states(10)));
  commit(aBegin());
  const before = dump(database);

  const committed = commit(aClaim(), aBegin(), ...states(10), aKeep({ name: 'none' }));

  t.deepEqual(dump(database), before);
  t.is(committed.revision, 10);
  t.deepEqual(committed.slices, []);
});

test('the next start continues a removal that was cut short', async (t) => {
  const engine = await SqliteEngine.start(t);
  await mustPush(engine.store.writer.lane(), [
    aClaim(),
    ...states(3 * sweepDeletesMax),
    aClaim('birch'),
    anUpsert({ shard: 'birch', name: 'stays' }),
  ]);
  await engine.store.close();
  commitOnce(engine, aClear('amber'));

  const store = await engine.open();
  t.is([...store.state.slices].find(({ slice }) => slice.shard === aKey().shard)?.objects, 2 * sweepDeletesMax);
  await until(async () => [...store.state.slices].length === 1);

  t.deepEqual(
    (await list(store, aScope())).map(({ key }) => key.name),
    ['stays'],
  );
  const amber = [...store.state.shards].find(({ shard }) => shard === aKey().shard);
  t.true(amber?.removed && amber.term === 5_000);
});

test('the next start also continues a removal that arrived as a claim, and keeps the term of the claim', async (t) => {
  const engine = await SqliteEngine.start(t);
  await mustPush(engine.store.writer.lane(), [aClaim({ via: 'parent' }), anUpsert({}, {}, 'parent')]);
  await engine.store.close();
  commitOnce(engine, aClaim({ via: 'parent', term: 2_000, removed: true }));

  const store = await engine.open();
  await until(async () => [...store.state.slices].length === 0);

  t.deepEqual(await list(store, aScope()), []);
  t.like([...store.state.shards][0], { via: undefined, term: 2_000, removed: true });
});

test('a removal without a fence that was cut short is not continued, because nothing durable requests it', async (t) => {
  const engine = await SqliteEngine.start(t);
  await mustPush(engine.store.writer.lane(), [aClaim(), ...states(2 * sweepDeletesMax)]);
  await engine.store.close();
  commitOnce(engine, aClear('amber', { fence: false }));

  const store = await engine.open();
  await mustWrite(store, aPut({ shard: 'birch' }, 'absent'));

  t.is((await list(store, aScope({ shard: 'amber' }))).length, sweepDeletesMax);
});

test('a store that was rolled back is consistent: its slices are current as of a position that it had then', async (t) => {
  const engine = await SqliteEngine.start(t);
  await mustPush(engine.store.writer.lane(), [aMeet('p1'), aClaim({ via: 'parent' })]);
  await mustPush(engine.store.writer.lane(), [...aFullSync({}, [anUpsert({}, {}, 'parent')], 'parent', 'filter-1'), aReach('77')]);
  await engine.store.close();
  copyFileSync(engine.file('strata.db'), `${engine.file('strata.db')}.backup`);
  await engine.open();
  await mustPush(engine.store.writer.lane(), [anUpsert({ name: 'lost' }, {}, 'parent'), aReach('78')]);
  await engine.store.close();

  for (const suffix of ['-wal', '-shm']) rmSync(engine.file('strata.db') + suffix, { force: true });
  copyFileSync(`${engine.file('strata.db')}.backup`, engine.file('strata.db'));
  const store = await engine.open();

  t.like([...store.state.slices][0], { objects: 1, syncedTerm: 1_000, everSynced: true, filterHash: 'filter-1' });
  t.deepEqual([...store.state.links], [{ neighbour: 'parent', cacheId: 'p1', position: '77' }]);
});
