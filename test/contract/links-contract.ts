/**
 * What every engine behind the port `Pushes` must do for a tree of caches, beside push-contract.ts.
 * It covers neighbours, links, current slices, digests, and what a link reads. The suite gets an
 * engine as a factory and knows nothing else of it.
 */
import type { ExecutionContext } from 'ava';
import { largeTest } from '../support/sizes.js';
import { test } from '../support/test.js';
import { bucketOf, bucketSet, inBuckets, noBuckets } from '../../src/domain/slices/buckets.js';
import type { Change } from '../../src/domain/change.js';
import type { ShardState } from '../../src/domain/claim.js';
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import { addDigest, digestOf, emptyDigest, formatDigest } from '../../src/domain/slices/digest.js';
import { Refused } from '../../src/domain/errors.js';
import type { Store } from '../../src/domain/store-port.js';
import { linksMax, type Push, type SliceState } from '../../src/domain/push.js';
import type { Revision } from '../../src/domain/revision.js';
import { childNeighbour } from '../../src/domain/via.js';
import { formatSlice } from '../../src/domain/slice.js';
import { aDelete, aKey, aPut, aScope, shardName, type Place } from '../support/objects.js';
import {
  aBegin,
  aClaim,
  aClear,
  aCompare,
  anInvalidation,
  aDrop,
  aKeep,
  aMeet,
  anAssume,
  aProcess,
  anEnd,
  aReach,
  aRetract,
  aSlice,
  anUpsert,
  aFullSync,
  firstTerm,
  mustPush,
  outcomeTexts,
} from '../support/pushes.js';
import { changeText, list, mustWrite, removalsEnd } from './read-all.js';
import type { Engine, EngineBounds } from './store-contract.js';

const eu = childNeighbour('eu');
const us = childNeighbour('us');
const filterHash = 'filter-1';
/** More than any engine removes in one commit. */
const manyObjects = 1_000;

async function shardOf(store: Store, shard = 'amber'): Promise<ShardState | undefined> {
  return [...store.state.shards].find((state) => state.shard === shardName(shard));
}

/** `local 1000 plain`, `child/eu 7`, `nobody 9 removed`. */
async function shardText(store: Store, shard = 'amber'): Promise<string | undefined> {
  const state = await shardOf(store, shard);
  if (state === undefined) return undefined;
  const { via = 'nobody', term, removed, plain } = state;
  return `${via} ${term}${removed ? ' removed' : ''}${plain ? ' plain' : ''}`;
}

async function sliceOf(store: Store, place: Place = {}): Promise<SliceState | undefined> {
  return [...store.state.slices].find(({ slice }) => formatSlice(slice) === formatSlice(aSlice(place)));
}

async function namesOf(store: Store): Promise<string[]> {
  return (await list(store, aScope())).map(({ key }) => key.name);
}

async function everyChange(store: Store, after: Revision): Promise<Change[]> {
  const all: Change[] = [];
  for await (const { changes } of store.history.everyChange({ after, upTo: store.revisions.published }, () => true)) all.push(...changes);
  return all;
}

/** The digest of a slice, computed from its objects. */
async function summedUp(store: Store, place: Place = {}): Promise<string> {
  const { resource, identity, shard } = { ...aKey(place).resource, shard: aKey(place).shard };
  const objects = await list(store, aScope({ resource, identity, shard }));
  return formatDigest(objects.reduce((sum, { key, body }) => addDigest(sum, digestOf(key, body)), emptyDigest));
}

function moveText({ key, movedPath }: Change): string {
  return `${key.name} ${movedPath === undefined ? 'moves nothing' : `from ${movedPath.before} to ${movedPath.after}`}`;
}

export function registerLinksContract(open: (t: ExecutionContext, bounds: EngineBounds) => Promise<Engine>): void {
  const opened = async (t: ExecutionContext): Promise<Store> => (await open(t, {})).store;

  // Vias

  test('a claim or a pusher takes a shard, is confirmed or is fenced, and the outcome of a fenced one names the holder', async (t) => {
    const comes = (process: number, named: number, nowMs = 0): Push => ({
      kind: 'acquire',
      shard: shardName('amber'),
      process: aProcess(process),
      term: named,
      nowMs,
    });
    const cases: readonly (readonly [known: Push, then: Push, outcome: string, state: string])[] = [
      [aClaim({ term: 5 }), aClaim({ term: 6, via: eu }), 'unchanged', 'child/eu 6'],
      [aClaim({ term: 5 }), aClaim({ term: 4, via: eu }), 'fenced by 5', 'local 5'],
      [aClaim({ term: 5, via: eu, origin: 'b' }), aClaim({ term: 5, via: us, origin: 'a' }), 'fenced by 5', 'child/eu 5'],
      [aClaim({ term: 5, via: eu, origin: 'a' }), aClaim({ term: 5, via: us, origin: 'b' }), 'unchanged', 'child/us 5'],
      [aClaim({ term: 5, via: eu }), aClaim({ term: 4, via: eu }), 'fenced by 5', 'child/eu 5'],
      // The same claim, chosen over another link.
      [aClaim({ term: 5, via: eu }), aClaim({ term: 5, via: us }), 'unchanged', 'child/us 5'],
      [aClaim({ term: 5, via: eu }), aClaim({ term: 5, via: undefined }), 'unchanged', 'nobody 5'],
      // A pusher that has the shard, or that was at another cache, or that another pusher has
      // replaced.
      [comes(5, 0, 5), comes(5, 5), 'acquired', 'local 5'],
      [comes(5, 0, 5), comes(5, 0, 9), 'acquired', 'local 5'],
      [comes(5, 0, 5), comes(6, 0, 9), 'acquired', 'local 9'],
      [comes(5, 0, 5), comes(6, 0, 3), 'acquired', 'local 6'],
      [comes(5, 0, 5), comes(6, 5), 'fenced by 5', 'local 5'],
      [comes(5, 0, 5), comes(6, 7), 'acquired', 'local 8'],
      [aClaim({ term: 5, via: 'parent' }), comes(5, 5), 'acquired', 'local 6'],
      [aClaim({ term: 5, via: 'parent' }), comes(6, 5), 'fenced by 5', 'parent 5'],
      [aClaim({ term: 5, via: 'parent', origin: 'here' }), comes(5, 5), 'acquired', 'local 6'],
      [aClaim({ term: 5 }), aClaim({ term: 6, via: eu, removed: true }), 'unchanged', 'nobody 6 removed'],
      [aClaim({ term: 5 }), aClaim({ term: 5, via: eu, removed: true }), 'unchanged', 'nobody 5 removed'],
      [aClaim({ term: 5 }), aClaim({ term: 4, via: eu, removed: true }), 'fenced by 5', 'local 5'],
      // A plain writer never claims. A cache repeats a claim of its own only for a shard that is
      // plain and local.
      [aClaim({ term: 5 }), aClaim({ term: 6, plain: true }), 'fenced by 5', 'local 5'],
      [aClaim({ term: 5, via: eu, removed: true }), comes(5, 5), 'fenced by 5, removed', 'nobody 5 removed'],
      [aClaim({ term: 5, via: eu, removed: true }), comes(6, 0), 'acquired', 'local 6'],
      [aClaim({ term: 5, via: eu, removed: true }), aClaim({ term: 5, via: us, removed: true }), 'unchanged', 'nobody 5 removed'],
      [aClaim({ term: 5, via: eu, removed: true }), aClaim({ term: 6, via: eu }), 'unchanged', 'child/eu 6'],
    ];

    for (const [i, [known, claim, outcome, then]] of cases.entries()) {
      const engine = await open(t, {});
      const outcomes = await engine.store.writer.lane().push([known, claim]);

      t.deepEqual(outcomeTexts(outcomes), [known.kind === 'acquire' ? 'acquired' : 'unchanged', outcome], `case ${i}`);
      t.is(await shardText(engine.store), then, `case ${i}`);
      const received = outcomes.at(-1);
      if (received?.kind === 'fenced') t.deepEqual(received.holder, await shardOf(engine.store), `case ${i}`);
      t.is(await shardText(await engine.restart()), then, `case ${i}, after a restart`);
    }
  });

  test('a link may push to the shards of its via at any term, a pusher only to a local shard at its own term', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim('amber', 5), aClaim({ shard: 'birch', via: eu }), aClaim({ shard: 'cedar', via: 'parent' })]);
    const spoken = (shard: string, by: Parameters<typeof anUpsert>[2]): readonly Push[] => [
      aBegin({ shard }, by),
      anUpsert({ shard }, {}, by),
      aKeep({ shard }, by),
      aRetract({ shard }, by),
      aCompare('', { shard }, by),
      anInvalidation({ shard }, by),
      anEnd({ shard }, by),
    ];

    for (const [shard, by, passes] of [
      ['amber', 5, true],
      ['amber', 4, false],
      ['amber', eu, false],
      ['amber', 'parent', false],
      ['birch', eu, true],
      ['birch', us, false],
      ['birch', firstTerm, false],
      ['cedar', 'parent', true],
      ['cedar', eu, false],
      ['dune', eu, false],
    ] as const) {
      const kinds = (await lane.push(spoken(shard, by))).map(({ kind }) => kind);
      t.is(
        kinds.every((kind) => kind === 'fenced'),
        !passes,
        `${by} speaks for ${shard}: ${kinds.join(' ')}`,
      );
      t.is(kinds.includes('fenced'), !passes);
    }
    t.deepEqual(await namesOf(store), []);
  });

  test('a shard that changes its via becomes stale and unsynced; its objects stay until the new via ends its sync', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim(), ...aFullSync({}, [anUpsert({ name: 'gone' }), anUpsert({ name: 'same' })])]);
    await mustPush(lane, [aBegin()]);

    await mustPush(lane, [aClaim({ via: eu, term: 2_000 })]);

    t.like(await sliceOf(store), { objects: 2, syncedTerm: 0, everSynced: true, filterHash: '' });
    t.deepEqual(outcomeTexts(await lane.push([anEnd({}, eu, filterHash)])), ['unbegun'], 'the sync of another neighbour is void');
    const changes: Change[] = [];
    store.commits.subscribe((commit) => changes.push(...commit.changes));
    t.deepEqual(await mustPush(lane, aFullSync({}, [anUpsert({ name: 'same' }, {}, eu)], eu, filterHash)), [
      'unchanged',
      'unchanged',
      'swept 1',
    ]);
    t.like(await sliceOf(store), { objects: 1, syncedTerm: 2_000, everSynced: true, filterHash });
    t.is(changes.length, 1, 'an equal object is no event');

    await mustPush(lane, [aClaim({ via: us, term: 2_001 })]);
    t.like(await sliceOf(store), { objects: 1, syncedTerm: 0, everSynced: true, filterHash: '' });
  });

  test('a claim over the same link leaves everything as it was: syncs go on, and slices stay current', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    const others = { resource: 'others' };
    await mustPush(lane, [aClaim({ via: eu }), ...aFullSync({}, [anUpsert({}, {}, eu)], eu, filterHash), aBegin(others, eu)]);

    for (const claim of [aClaim({ via: eu }), aClaim({ via: eu, term: 2_000 }), aClaim({ via: eu, term: 2_001 })])
      await mustPush(lane, [claim]);

    t.like(await sliceOf(store), { syncedTerm: firstTerm, filterHash });
    t.deepEqual(await mustPush(lane, [anEnd(others, eu, filterHash)]), ['swept 0']);
    t.like(await sliceOf(store, others), { syncedTerm: 2_001, filterHash });
  });

  test('a claim over a link does not overtake a long end, which counts for the term before the claim', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim({ via: eu }), ...Array.from({ length: manyObjects }, (_, i) => anUpsert({ name: `n${i}` }, {}, eu))]);

    const ended = lane.push([aBegin({}, eu), anEnd({}, eu, filterHash)]);
    const claimed = lane.push([aClaim({ via: eu, term: 2_000 })]);

    t.deepEqual(outcomeTexts([...(await ended), ...(await claimed)]), ['unchanged', `swept ${manyObjects}`, 'unchanged']);
    t.like(await sliceOf(store), { syncedTerm: firstTerm, filterHash });
  });

  test('a removal that arrives as a claim fences; the clear after it removes the objects, and the tombstone stays', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim({ via: eu }), ...aFullSync({}, [anUpsert({}, {}, eu)], eu, filterHash)]);

    const tombstone = aClaim({ via: eu, term: 2_000, removed: true });
    t.deepEqual(await mustPush(lane, [tombstone, aClear('amber', { fence: false })]), ['unchanged', 'swept 1']);

    t.deepEqual(outcomeTexts(await lane.push([anUpsert({}, {}, eu), aClaim({ via: eu })])), [
      'fenced by 2000, removed',
      'fenced by 2000, removed',
    ]);
    t.deepEqual([...store.state.slices], []);
    t.is(await shardText(await engine.restart()), 'nobody 2000 removed');
  });

  test('the next start finishes removals that were cut short, in whatever order they were sent', async (t) => {
    const engine = await open(t, {});
    const shards = ['delta', 'amber', 'coral', 'birch'];
    const from = engine.store.revisions.published;
    for (const shard of shards)
      await mustPush(engine.store.writer.lane(), [aClaim({ shard, via: eu }), anUpsert({ shard, name: shard }, {}, eu)]);
    await mustPush(
      engine.store.writer.lane(),
      shards.map((shard) => aClaim({ shard, via: eu, term: 2_000, removed: true })),
    );

    const store = await engine.restart();
    await removalsEnd(store);

    t.deepEqual(
      (await everyChange(store, from)).slice(shards.length).map(({ key }) => key.shard),
      ['amber', 'birch', 'coral', 'delta'].map(shardName),
    );
  });

  test('a removal by an operator takes the shard from its via and makes a tombstone', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim({ via: eu }), ...aFullSync({}, [anUpsert({}, {}, eu)], eu, filterHash)]);

    t.deepEqual(await mustPush(lane, [aClear('amber', { nowMs: 5_000 })]), ['swept 1']);

    t.is(await shardText(store), 'nobody 5000 removed');
    t.is((await lane.push([anUpsert({}, {}, eu)]))[0]?.kind, 'fenced');
  });

  // Plain writers

  test('a plain write makes a shard without a via local and plain, and leaves a local shard unchanged', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    const lane = store.writer.lane();

    await mustWrite(store, aPut({}, 'absent'));
    t.is(await shardText(store), 'local 1 plain');
    await mustWrite(store, aDelete({}));
    await mustPush(lane, [aClaim()]);
    t.is(await shardText(store), 'local 1000', 'a shard with a pusher is not plain');
    await mustWrite(store, aPut({}, 'absent'));
    t.is(await shardText(store), 'local 1000');
    await mustPush(lane, [aClear('amber', { nowMs: 5_000 })]);
    await mustWrite(store, aPut({}, 'absent'));

    t.is(await shardText(store), 'local 5001 plain');
    t.is(await shardText(await engine.restart()), 'local 5001 plain');
  });

  test('a plain write to a shard of another neighbour is refused, unless it takes the shard over with the next term', async (t) => {
    for (const neighbour of ['parent', eu] as const) {
      const store = await opened(t);
      const lane = store.writer.lane();
      await mustPush(lane, [
        aClaim({ via: neighbour }),
        ...aFullSync({}, [anUpsert({}, {}, neighbour)], neighbour, filterHash),
        aBegin({}, neighbour),
      ]);

      for (const mutation of [aPut({ name: 'new' }, 'absent'), aPut({}, 1), aDelete({}), aDelete({ name: 'none' })])
        t.deepEqual(await store.writer.submit(mutation), { kind: 'refused', why: 'elsewhere' });
      t.deepEqual(await store.writer.submit({ ...aDelete({ name: 'none' }), takes: true }), { kind: 'refused', why: 'absent' });
      t.deepEqual(await store.writer.submit({ ...aPut({}, 'absent'), takes: true }), { kind: 'refused', why: 'exists' });
      t.is(await shardText(store), `${neighbour} 1000`, 'a refused write takes nothing over');
      await mustWrite(store, { ...aPut({ name: 'new' }, 'absent'), takes: true });

      t.is(await shardText(store), 'local 1001 plain');
      t.like(await sliceOf(store), { objects: 2, syncedTerm: 0, everSynced: true, filterHash: '' });
      t.deepEqual(outcomeTexts(await lane.push([anEnd({}, neighbour, filterHash)])), ['fenced by 1001']);
      await mustWrite(store, aDelete({ name: 'new' }));
    }
  });

  test('a plain delete takes a shard as a plain put does', async (t) => {
    const store = await opened(t);
    await mustPush(store.writer.lane(), [aClaim({ via: eu }), anUpsert({}, {}, eu)]);

    await mustWrite(store, { ...aDelete({}), takes: true });

    t.is(await shardText(store), 'local 1001 plain');
  });

  test('`assume` makes the slices of a plain and local shard count as synced, and those of no other shard', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustWrite(store, aPut({ shard: 'plain' }, 'absent'));
    await mustWrite(store, aPut({ shard: 'plain', resource: 'others' }, 'absent'));
    await mustPush(lane, [aClaim('pushed'), anUpsert({ shard: 'pushed' })]);
    await mustPush(lane, [aClaim({ shard: 'child', via: eu }), anUpsert({ shard: 'child' }, {}, eu)]);

    t.deepEqual(await mustPush(lane, ['plain', 'pushed', 'child', 'none'].map(anAssume)), Array(4).fill('unchanged'));

    t.like(await sliceOf(store, { shard: 'plain' }), { syncedTerm: 1, everSynced: true, filterHash: '' });
    t.like(await sliceOf(store, { shard: 'plain', resource: 'others' }), { syncedTerm: 1, everSynced: true });
    for (const shard of ['pushed', 'child']) t.like(await sliceOf(store, { shard }), { syncedTerm: 0, everSynced: false });
    t.is(await shardOf(store, 'none'), undefined);
    await mustPush(lane, [aClaim({ shard: 'plain', via: eu, term: 2 })]);
    t.like(await sliceOf(store, { shard: 'plain' }), { syncedTerm: 0, everSynced: true });
  });

  test('a slice that becomes empty in the same commit as `assume` is forgotten instead of assumed to be synced', async (t) => {
    const { store, traits } = await open(t, {});
    await mustWrite(store, aPut({}, 'absent'));

    const deleted = mustWrite(store, aDelete({}));
    if (!traits.ordersWrites) await deleted;
    await Promise.all([deleted, mustPush(store.writer.lane(), [anAssume('amber')])]);

    t.deepEqual([...store.state.slices], []);
  });

  // Current slices

  test('a slice is current under the filter hash of the link that ended it, until a begin, an invalidate or a drop', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    const lane = store.writer.lane();
    const state = anUpsert({}, {}, eu);
    await mustPush(lane, [aClaim({ via: eu }), state]);
    t.is((await sliceOf(store))?.filterHash, '');

    for (const push of [aBegin({}, eu), anInvalidation({}, eu), aDrop()]) {
      await mustPush(lane, aFullSync({}, [state], eu, filterHash));
      t.like(await sliceOf(store), { objects: 1, syncedTerm: firstTerm, everSynced: true, filterHash });
      await mustPush(lane, [push, state]);
      t.like(await sliceOf(store), { objects: 1, syncedTerm: 0, filterHash: '' }, push.kind);
    }
    await mustPush(lane, aFullSync({}, [state], eu, filterHash));

    t.is((await sliceOf(await engine.restart()))?.filterHash, filterHash);
  });

  test('a slice remembers the link that brought its objects until another link ends its sync, even once it is stale', async (t) => {
    const engine = await open(t, {});
    const lane = engine.store.writer.lane();
    const cameOver = async (): Promise<string | undefined> => (await sliceOf(engine.store))?.cameOver;
    const leaving: Push = { kind: 'invalidate', slice: aSlice(), by: { kind: 'link', neighbour: eu } };
    await mustPush(lane, [aClaim({ via: eu }), leaving]);
    t.is(await sliceOf(engine.store), undefined);

    await mustPush(lane, [aBegin({}, eu), anUpsert({}, {}, eu)]);
    t.is(await cameOver(), eu, 'before its end');
    await mustPush(lane, [anEnd({}, eu, filterHash), leaving]);
    t.is((await sliceOf(await engine.restart()))?.cameOver, eu);
    await mustPush(engine.store.writer.lane(), [aClaim({ via: 'parent', term: firstTerm + 1 })]);
    t.is(await cameOver(), eu);
    await mustPush(engine.store.writer.lane(), [aBegin({}, 'parent'), anUpsert({}, {}, 'parent')]);
    t.is(await cameOver(), eu, 'what it brings is there already');
    await mustPush(engine.store.writer.lane(), [anEnd({}, 'parent', filterHash)]);
    t.is(await cameOver(), 'parent');
  });

  test('a slice that a pusher or a plain writer changed last remembers no link', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    const cameOver = async (): Promise<string | undefined> => (await sliceOf(store))?.cameOver;
    await mustPush(lane, [aClaim(), ...aFullSync({}, [anUpsert()])]);
    t.is(await cameOver(), '');
    await mustPush(lane, [aClaim({ via: eu, term: firstTerm + 1 }), anUpsert({ name: 'two' }, {}, eu)]);
    t.is(await cameOver(), eu);

    await mustWrite(store, { ...aPut({ name: 'three' }, 'absent'), takes: true });

    t.is(await cameOver(), '');
  });

  test('a pusher’s sync makes a slice current for no link', async (t) => {
    const store = await opened(t);

    await mustPush(store.writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert()], firstTerm, filterHash)]);

    t.like(await sliceOf(store), { syncedTerm: firstTerm, filterHash: '' });
    t.deepEqual(outcomeTexts(await store.writer.lane().push([anEnd({}, firstTerm, filterHash)])), ['unbegun']);
  });

  test('a link may end a current slice without a begin: it then counts as synced in the present term, and nothing is removed', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim({ via: eu }), ...aFullSync({}, [anUpsert({}, {}, eu)], eu, filterHash)]);
    await mustPush(lane, [aClaim({ via: eu, term: 2_000 })]);

    t.deepEqual(outcomeTexts(await lane.push([anEnd({}, eu, 'another'), anEnd({}, eu), anEnd({ resource: 'others' }, eu, filterHash)])), [
      'unbegun',
      'unbegun',
      'unbegun',
    ]);
    t.like(await sliceOf(store), { syncedTerm: firstTerm, filterHash });
    t.deepEqual(await mustPush(lane, [anEnd({}, eu, filterHash)]), ['swept 0']);

    t.like(await sliceOf(store), { objects: 1, syncedTerm: 2_000, everSynced: true, filterHash });
  });

  test('an end from a link counts for the term that it names, even if a higher term is known by then', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    const of = (term: number): Push => ({ kind: 'end', slice: aSlice(), by: { kind: 'link', neighbour: eu }, filterHash, term });
    await mustPush(lane, [aClaim({ via: eu }), anUpsert({ name: 'gone' }, {}, eu), aBegin({}, eu), anUpsert({}, {}, eu)]);
    await mustPush(lane, [aClaim({ via: eu, term: 2_000 })]);

    t.deepEqual(await mustPush(lane, [of(firstTerm)]), ['swept 1']);
    t.like(await sliceOf(store), { objects: 1, syncedTerm: firstTerm, everSynced: true, filterHash });
    t.deepEqual(await mustPush(lane, [of(2_000)]), ['swept 0']);

    t.like(await sliceOf(store), { objects: 1, syncedTerm: 2_000, everSynced: true, filterHash });
  });

  test('an end without buckets removes nothing if its sync is under way', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    const lane = store.writer.lane();
    const same: Push = { kind: 'end', slice: aSlice(), by: { kind: 'link', neighbour: eu }, filterHash, buckets: noBuckets };
    await mustPush(lane, [aClaim({ via: eu }), anUpsert({ name: 'a' }, {}, eu), anUpsert({ name: 'b' }, {}, eu)]);
    t.deepEqual(outcomeTexts(await lane.push([same])), ['unbegun']);

    t.deepEqual(await mustPush(lane, [aBegin({}, eu), aRetract({ name: 'b' }, eu), same]), ['unchanged', 'written', 'swept 0']);

    t.like(await sliceOf(store), { objects: 1, syncedTerm: firstTerm, everSynced: true, filterHash });
    await mustPush(lane, [aBegin({}, eu)]);
    const again = (await engine.restart()).writer.lane();
    t.deepEqual(outcomeTexts(await again.push([same])), ['unbegun']);
  });

  test('an end of some buckets removes the unmarked objects of these buckets and nothing else, in however many steps', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    const names = Array.from({ length: 600 }, (_, i) => `o-${i}`);
    await mustPush(lane, [aClaim({ via: eu }), ...names.map((name) => anUpsert({ name }, {}, eu))]);
    const keys = names.map((name) => aKey({ name }));
    const sent = bucketSet(keys.map(bucketOf).filter((bucket) => bucket % 2 === 0));
    const isSent = inBuckets(sent);
    const [confirmed, ...gone] = keys.filter(isSent);
    const end: Push = { kind: 'end', slice: aSlice(), by: { kind: 'link', neighbour: eu }, filterHash, buckets: sent };

    const outcomes = await mustPush(lane, [aBegin({}, eu), anUpsert({ name: confirmed?.name ?? '' }, {}, eu), end]);

    t.is(outcomes.at(-1), `swept ${gone.length}`);
    t.true(gone.length > 256, 'more than one step');
    t.like(await sliceOf(store), { objects: names.length - gone.length, filterHash });
    const left = await list(store, aScope());
    const stays = keys.filter((key) => !isSent(key) || key === confirmed);
    t.deepEqual(left.map(({ key }) => key.name).toSorted(), stays.map(({ name }) => name).toSorted());
  });

  // Links

  test('a link that meets another cache than before loses its position, and its slices become stale; other links keep theirs', async (t) => {
    for (const neighbour of ['parent', eu] as const) {
      const store = await opened(t);
      const lane = store.writer.lane();
      const other = { shard: 'birch' };
      await mustPush(lane, [
        aMeet('c1', neighbour),
        aClaim({ via: neighbour }),
        ...aFullSync({}, [anUpsert({}, {}, neighbour)], neighbour, filterHash),
        aReach('77', neighbour),
      ]);
      await mustPush(lane, [aClaim({ ...other, via: us }), ...aFullSync(other, [anUpsert(other, {}, us)], us, filterHash)]);

      await mustPush(lane, [aMeet('c1', neighbour)]);
      t.deepEqual([...store.state.links], [{ neighbour, cacheId: 'c1', position: '77' }]);
      t.is((await sliceOf(store))?.filterHash, filterHash);
      await mustPush(lane, [aMeet('c2', neighbour)]);

      t.deepEqual([...store.state.links], [{ neighbour, cacheId: 'c2', position: '' }]);
      // The new parent may not push objects that came from the former parent.
      t.is(await shardText(store), neighbour === 'parent' ? 'nobody 1000' : 'child/eu 1000');
      t.like(await sliceOf(store), { objects: 1, syncedTerm: neighbour === 'parent' ? 0 : firstTerm, everSynced: true, filterHash: '' });
      t.is((await sliceOf(store, other))?.filterHash, filterHash, 'other links are not concerned');
    }
  });

  test('shards that came from a former parent have no via under a new parent, and a plain write has to take them over', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    const lane = store.writer.lane();
    await mustPush(lane, [
      aClaim('amber'),
      aClaim({ shard: 'birch', via: eu }),
      aMeet('p1'),
      aClaim({ shard: 'cedar', via: 'parent' }),
      anUpsert({ shard: 'cedar' }, {}, 'parent'),
      aClear('dune', { nowMs: 5 }),
    ]);
    const texts = (of: Store) => Promise.all(['amber', 'birch', 'cedar', 'dune'].map((shard) => shardText(of, shard)));
    const before = ['local 1000', 'child/eu 1000', 'parent 1000', 'nobody 5 removed'];

    await mustPush(lane, [aMeet('p1'), aMeet('e1', eu), aMeet('e2', eu)]);
    t.deepEqual(await texts(store), before);
    await mustPush(lane, [aMeet('p2')]);

    const after = ['local 1000', 'child/eu 1000', 'nobody 1000', 'nobody 5 removed'];
    t.deepEqual(await texts(store), after);
    t.deepEqual(outcomeTexts(await lane.push([anUpsert({ shard: 'cedar' }, {}, 'parent')])), ['fenced by 1000']);
    const put = aPut({ shard: 'cedar', name: 'new' }, 'absent');
    t.deepEqual(await store.writer.submit(put), { kind: 'refused', why: 'elsewhere' });
    const again = await engine.restart();
    t.deepEqual(await texts(again), after);
    await mustWrite(again, { ...put, takes: true });
    t.is(await shardText(again, 'cedar'), 'local 1001 plain');
  });

  test('no child may use the last id of another child; a parent may have the same id as a child', async (t) => {
    const engine = await open(t, {});
    const lane = engine.store.writer.lane();

    const outcomes = await lane.push([aMeet('c2', eu), aMeet('c1', eu), aMeet('c1', us), aMeet('c3', us), aMeet('c1'), aMeet('c1', eu)]);
    const again = await engine.restart();

    t.deepEqual(outcomeTexts(outcomes), ['unchanged', 'unchanged', 'bound to eu', 'unchanged', 'unchanged', 'unchanged']);
    t.deepEqual(outcomeTexts(await again.writer.lane().push([aMeet('c1', us), aMeet('c3', eu)])), ['bound to eu', 'bound to us']);
    t.deepEqual([...again.state.links].map(({ neighbour, cacheId }) => `${neighbour} ${cacheId}`).toSorted(), [
      'child/eu c1',
      'child/us c3',
      'parent c1',
    ]);
  });

  largeTest('a child has one row, however many ids it uses; a new child is met only while there is room', async (t) => {
    const engine = await open(t, {});
    const lane = engine.store.writer.lane();
    await mustPush(lane, [...Array.from({ length: 100 }, (_, i) => aMeet(`id-${i}`, eu)), aMeet('u1', us), aMeet('p1')]);
    t.is([...engine.store.state.links].length, 3);

    const children = Array.from({ length: linksMax - 3 }, (_, i) => aMeet(`of-${i}`, childNeighbour(`c${i}`)));
    const lanes = Array.from({ length: 32 }, () => engine.store.writer.lane());
    await Promise.all(
      lanes.map((each, at) =>
        mustPush(
          each,
          children.filter((_, i) => i % lanes.length === at),
        ),
      ),
    );
    const again = await engine.restart();
    const outcomes = await again.writer
      .lane()
      .push([aMeet('n1', childNeighbour('new')), aMeet('id-0', eu), aMeet('p2'), aMeet('of-1', us)]);

    t.deepEqual(outcomeTexts(outcomes), ['full', 'unchanged', 'unchanged', 'bound to c1']);
    t.is([...again.state.links].length, linksMax);
  });

  test('a child that leaves leaves no row; its shards keep their objects and have no via until they are claimed again', async (t) => {
    const engine = await open(t, {});
    const lane = engine.store.writer.lane();
    const received: string[] = [];
    await mustPush(lane, [aMeet('c1', eu), aMeet('c2', us), aMeet('p1'), aClaim({ term: 7, via: eu, origin: 'o' })]);
    await mustPush(lane, [aClaim({ shard: 'birch', via: us }), ...aFullSync({}, [anUpsert({}, {}, eu)], eu, filterHash), aReach('5', eu)]);
    engine.store.state.follow(({ shards }) => received.push(...shards.map(({ shard, via = 'nobody' }) => `${shard} ${via}`)));

    await mustPush(lane, [{ kind: 'leave', neighbour: eu }, aReach('6', eu)]);
    const left = [...engine.store.state.links].map(({ neighbour }) => neighbour).toSorted();
    const again = await engine.restart();

    t.deepEqual(left, [us, 'parent']);
    t.deepEqual(received, ['amber nobody']);
    t.deepEqual([...again.state.links].map(({ neighbour }) => neighbour).toSorted(), [us, 'parent']);
    t.deepEqual([await shardText(again), await shardText(again, 'birch')], ['nobody 7', 'child/us 1000']);
    t.deepEqual(await namesOf(again), ['one']);
    t.like(await sliceOf(again), { filterHash: '', syncedTerm: 0, everSynced: true, objects: 1 });
    const then = [aMeet('c1', childNeighbour('new')), aMeet('c9', eu), aClaim({ term: 7, via: eu, origin: 'o' })];
    t.deepEqual(outcomeTexts(await again.writer.lane().push(then)), ['unchanged', 'unchanged', 'unchanged']);
    t.is(await shardText(again), 'child/eu 7');
  });

  test('a position is as durable as what was sent before it', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    store.commits.subscribe(() => t.fail('a link is no change'));
    await mustPush(store.writer.lane(), [aMeet('p1'), aMeet('e1', eu), aReach('123'), aReach('1234567000000000009'), aReach('5', eu)]);

    const links = [...(await engine.restart()).state.links].toSorted((a, b) => (a.neighbour < b.neighbour ? -1 : 1));

    t.deepEqual(links, [
      { neighbour: eu, cacheId: 'e1', position: '5' },
      { neighbour: 'parent', cacheId: 'p1', position: '1234567000000000009' },
    ]);
  });

  // Digests

  test('two slices with the same objects have the same digest, whatever the order of their changes', async (t) => {
    const [one, other] = [await opened(t), await opened(t)];
    const names = ['a', 'b', 'c', 'd'];
    const lane = other.writer.lane();

    await mustPush(one.writer.lane(), [aClaim(), ...names.map((name) => anUpsert({ name }, { spec: name }))]);
    await mustWrite(other, aPut({ name: 'd' }, 'absent', { spec: 'old' }));
    await mustWrite(other, aPut({ name: 'gone' }, 'absent'));
    await mustPush(lane, [aClaim({ via: eu }), anUpsert({ name: 'b' }, { spec: 'b' }, eu), anUpsert({ name: 'swept' }, {}, eu)]);
    const sync = names.toReversed().map((name) => anUpsert({ name }, { spec: name }, eu));
    await mustPush(lane, [aRetract({ name: 'gone' }, eu), ...aFullSync({}, sync, eu, filterHash)]);

    const digest = (await sliceOf(one))?.digest;
    t.is((await sliceOf(other))?.digest, digest);
    t.is(digest, await summedUp(one));
    t.not(digest, formatDigest(emptyDigest));
  });

  test('a digest follows every change: create, replace, delete, rewritten namesake, sweep, drop and clear; a restart keeps it', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    const lane = store.writer.lane();
    const places: readonly Place[] = [{}, { shard: 'birch' }, { resource: 'others' }];
    const agree = async (now: Store, title: string): Promise<void> => {
      for (const place of places) {
        const received = (await sliceOf(now, place))?.digest ?? formatDigest(emptyDigest);
        t.is(received, await summedUp(now, place), `${title}: ${JSON.stringify(place)}`);
      }
    };
    const steps: readonly (readonly Push[])[] = [
      [aClaim(), aClaim('birch')],
      [anUpsert({ name: 'a' }), anUpsert({ name: 'a', shard: 'birch' }, { spec: 1 }), anUpsert({ resource: 'others' })],
      [anUpsert({ name: 'a' }, { spec: 2 }), anUpsert({ name: 'a' }, { spec: 2 }), anUpsert({ name: 'b' })],
      [aRetract({ name: 'a' })],
      [anUpsert({ name: 'c' }), aBegin(), aKeep({ name: 'b' }), anEnd()],
      [aDrop({ resource: 'others' })],
      [aClear('birch')],
    ];

    for (const [i, step] of steps.entries()) {
      await mustPush(lane, step);
      await agree(store, `step ${i}`);
    }
    await mustWrite(store, aDelete({ name: 'b' }));
    await agree(store, 'plain delete');
    await mustWrite(store, aPut({ name: 'z' }, 'absent'));

    await agree(await engine.restart(), 'restart');
  });

  test('a comparison returns the held digest if it differs', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim({ via: eu }), anUpsert({}, {}, eu)]);
    const digest = await summedUp(store);
    const empty = formatDigest(emptyDigest);

    const outcomes = await lane.push([
      aCompare(digest, {}, eu),
      aCompare(empty, {}, eu),
      aCompare(empty, { resource: 'others' }, eu),
      anUpsert({}, { spec: 2 }, eu),
      aCompare(digest, {}, eu),
    ]);

    const isCurrent = false;
    t.deepEqual(outcomes.slice(0, 3), [{ kind: 'unchanged' }, { kind: 'differs', digest, isCurrent }, { kind: 'unchanged' }]);
    t.deepEqual(outcomes[4], { kind: 'differs', digest: await summedUp(store), isCurrent });
    t.is(await sliceOf(store, { resource: 'others' }), undefined, 'a comparison changes nothing');
  });

  test('a comparison with another digest says whether the slice was current at that push, whatever follows in the same commit', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim({ via: eu }), ...aFullSync({}, [anUpsert({}, {}, eu)], eu, 'all')]);
    const empty = formatDigest(emptyDigest);

    const outcomes = await lane.push([
      aCompare(empty, {}, eu),
      anInvalidation({}, eu),
      aCompare(empty, {}, eu),
      ...aFullSync({}, [anUpsert({}, {}, eu)], eu, 'less'),
    ]);

    const [first, , second] = outcomes;
    t.like(first, { kind: 'differs', isCurrent: true });
    t.like(second, { kind: 'differs', isCurrent: false });
    t.is((await sliceOf(store))?.filterHash, 'less');
  });

  // What a link reads

  test('a link reads every change of every type in order, as far back as history goes', async (t) => {
    const engine = await open(t, { changesMax: 6 });
    const { store } = engine;
    const lane = store.writer.lane();
    const live: Change[] = [];
    const from = store.revisions.published;
    store.commits.subscribe(({ changes }) => live.push(...changes));
    await mustPush(lane, [aClaim(), anUpsert(), anUpsert({ resource: 'others' }), anUpsert({ identity: 'hash' })]);
    await mustWrite(store, aPut({ shard: 'birch', resource: 'others' }, 'absent'));
    await mustPush(lane, [aRetract({ resource: 'others' })]);

    t.deepEqual((await everyChange(store, from)).map(changeText), live.map(changeText));
    t.deepEqual((await everyChange(store, live[2]!.revision)).map(changeText), live.slice(3).map(changeText));
    t.deepEqual(await everyChange(store, store.revisions.published), []);
    await mustPush(lane, [anUpsert({}, { spec: 2 })]);
    await mustPush(lane, [anUpsert({}, { spec: 3 })]);
    await engine.compact();

    t.is((await everyChange(store, store.revisions.compacted)).length, 6);
    const error = await t.throwsAsync(everyChange(store, store.revisions.compacted - 1), { instanceOf: Refused });
    t.is(error?.refusal.reason, 'Expired');
  });

  test('a change shows where it moved the path of its logical cluster, live and from the log', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    const lane = store.writer.lane();
    const live: Change[] = [];
    const from = store.revisions.published;
    store.commits.subscribe(({ changes }) => live.push(...changes));
    for (const push of [
      aClaim(),
      anUpsert({ name: 'a' }, { path: 'root:a' }),
      anUpsert({ name: 'b' }, { path: 'root:a' }),
      anUpsert({ name: 'c' }),
      anUpsert({ name: 'b' }, { path: 'root:b' }),
      anUpsert({ name: 'a' }, { path: 'root:b', spec: 2 }),
      aRetract({ name: 'a' }),
      aRetract({ name: 'b' }),
      aBegin(),
      anEnd(),
    ])
      await mustPush(lane, [push]);
    const texts = [
      'a from undefined to root:a',
      'b moves nothing',
      'c moves nothing',
      'b from root:a to root:b',
      'a moves nothing',
      'a moves nothing',
      ...(engine.traits.keepsPaths ? ['b moves nothing', 'c from root:b to undefined'] : ['b from root:b to undefined', 'c moves nothing']),
    ];

    t.deepEqual(live.map(moveText), texts);
    t.deepEqual((await everyChange(await engine.restart(), from)).map(moveText), texts);
  });

  test('the paths of logical clusters are returned in the order of the request', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    const birch = { shard: 'birch' };
    const bold = { cluster: 'bold' };
    await mustPush(lane, [
      aClaim(),
      aClaim('birch'),
      anUpsert({}, { path: 'root:a' }),
      anUpsert(birch, { path: 'root:b' }),
      anUpsert(bold),
    ]);

    const paths = await store.paths.pathsOf([aKey(birch), aKey(bold), aKey(), aKey()]);

    t.deepEqual(paths, [parseCanonicalPath('root:b'), undefined, parseCanonicalPath('root:a'), parseCanonicalPath('root:a')]);
    t.deepEqual(await store.paths.pathsOf([]), []);
  });

  test('the paths of logical clusters can be read at any revision that is not compacted', async (t) => {
    const { store, traits } = await open(t, {});
    const lane = store.writer.lane();
    const paths: string[] = [];
    const revisions: Revision[] = [store.revisions.published];
    const steps: readonly Push[] = [
      anUpsert({}, { path: 'root:a' }),
      anUpsert({ name: 'second' }),
      anUpsert({}, { path: 'root:b', spec: 2 }),
      aRetract(),
      aRetract({ name: 'second' }),
      anUpsert({}, { path: 'root:c' }),
    ];
    await mustPush(lane, [aClaim(), aClaim('birch'), anUpsert({ shard: 'birch' }, { path: 'root:birch' })]);
    for (const step of steps) {
      await mustPush(lane, [step]);
      revisions.push(store.revisions.published);
    }

    for (const at of revisions.slice(1)) paths.push((await store.paths.pathsOf([aKey()], at)).map(String).join());

    t.deepEqual(paths, ['root:a', 'root:a', 'root:b', traits.keepsPaths ? 'root:b' : 'undefined', 'undefined', 'root:c']);
    t.deepEqual(await store.paths.pathsOf([aKey()], revisions[0]), [undefined], 'before there was any');
  });

  test('the store refuses, as expired, to read the paths of logical clusters at a compacted revision', async (t) => {
    const engine = await open(t, { changesMax: 6 });
    const { store } = engine;
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim()]);
    for (let spec = 0; spec < 20; spec++) await mustPush(lane, [anUpsert({}, { path: `root:${'abc'[spec % 3]}`, spec })]);
    const current = parseCanonicalPath('root:b');

    await engine.compact();

    t.true(store.revisions.compacted > 1);
    t.not((await store.paths.pathsOf([aKey()], store.revisions.compacted))[0], undefined);
    t.deepEqual(await store.paths.pathsOf([aKey()], store.revisions.published), [current]);
    await t.throwsAsync(store.paths.pathsOf([aKey()], store.revisions.compacted - 1), { instanceOf: Refused });
  });

  test('followers get the shards and slices that a commit changed once they can be read, before the commit’s changes are sent', async (t) => {
    const { store, traits } = await open(t, {});
    const lane = store.writer.lane();
    const received: string[] = [];
    const follower = store.state.follow(({ shards, slices }) => {
      received.push(...shards.map(({ shard, via }) => `shard ${shard} ${via}`));
      received.push(...slices.map(({ slice, objects, filterHash: of }) => `slice ${slice.shard} ${objects} ${of}`));
    });
    store.commits.subscribe(({ revision }) => received.push(revision === store.revisions.published ? 'changes' : 'too late'));

    await mustPush(lane, [aClaim({ via: eu }), anUpsert({}, {}, eu)]);
    await mustPush(lane, [aClaim({ via: eu }), anUpsert({}, {}, eu), aMeet('e1', eu), aReach('7', eu)]);
    await mustPush(lane, [aBegin({}, eu), aKeep({}, eu), anEnd({}, eu, filterHash)]);
    await mustPush(lane, [aRetract({}, eu), aDrop()]);
    follower.cancel();
    await mustPush(lane, [aClaim('birch')]);

    const atLast = ['slice amber 0 ', 'changes'];
    // An engine may publish in two steps what was pushed together, and publish the same state
    // twice.
    t.deepEqual(
      received.filter((text, i) => text !== received[i - 1]),
      [
        'shard amber child/eu',
        'slice amber 1 ',
        'changes',
        ...(traits.ordersWrites ? [] : ['slice amber 1 ']),
        `slice amber 1 ${filterHash}`,
        ...(traits.ordersWrites ? atLast : [`slice amber 0 ${filterHash}`, 'changes', 'slice amber 0 ']),
      ],
    );
  });

  test('an empty position makes every slice of its link stale, and no other slice', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [
      aMeet('root'),
      aClaim({ via: 'parent' }),
      ...aFullSync({}, [anUpsert({}, {}, 'parent')], 'parent', 'e'),
      aReach('7'),
    ]);
    await mustPush(lane, [aMeet('eu-1', eu), aClaim({ shard: 'birch', via: eu }), ...aFullSync({ shard: 'birch' }, [], eu, 'e')]);

    await mustPush(lane, [aReach('')]);

    const filters = new Map([...store.state.slices].map(({ slice, filterHash }) => [slice.shard as string, filterHash]));
    t.deepEqual([filters.get('amber'), filters.get('birch')], ['', 'e']);
  });

  test('a position changes nothing if its link was never met or has left', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim({ via: 'parent' }), ...aFullSync({}, [], 'parent', filterHash)]);

    await mustPush(lane, [aReach('7'), aReach('')]);

    t.is((await sliceOf(store))?.filterHash, filterHash);
    t.deepEqual([...store.state.links], []);
  });

  test('an empty position ends the syncs of its link, so a later end counts as unbegun', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aMeet('root'), aClaim({ via: 'parent' }), aReach('7'), aBegin({}, 'parent')]);

    await mustPush(lane, [aReach('')]);

    const [ended] = await lane.push([anEnd({}, 'parent', filterHash)]);
    t.is(ended?.kind, 'unbegun');
    t.not((await sliceOf(store))?.filterHash, filterHash);
  });

  test('a clear that is only for a removed shard does nothing if the shard has a holder by then', async (t) => {
    const store = await opened(t);
    const lane = store.writer.lane();
    await mustPush(lane, [aClaim({ term: 5 }), anUpsert({}, {}, 5)]);
    const clear: Push = { kind: 'clear', shard: shardName('amber'), fence: false, nowMs: 0, onlyRemoved: true };

    t.deepEqual(outcomeTexts(await lane.push([clear])), ['unchanged']);
    await mustPush(lane, [aClaim({ term: 6, via: eu, removed: true })]);
    t.deepEqual(outcomeTexts(await lane.push([clear])), ['swept 1']);
  });
}
