/**
 * The rules by which both engines decide, as tables. Each line is a fact from the header of
 * decide.ts, and fails if that rule is inverted.
 */
import { test } from '../../support/test.js';
import { noBuckets } from '../../../src/domain/slices/buckets.js';
import type { Mutation } from '../../../src/domain/mutation.js';
import { linksMax, type Push, type Speaker } from '../../../src/domain/push.js';
import { childNeighbour } from '../../../src/domain/via.js';
import {
  assumed,
  cleared,
  compared,
  decideEnd,
  decideMeeting,
  decideMutation,
  voidsShards,
  neverSynced,
  speaksFor,
  stale,
  synced,
  unsynced,
} from '../../../src/store/decide.js';
import { Marks } from '../../../src/store/marks.js';
import type { Sync } from '../../../src/store/syncs.js';
import { aDelete, aPut, shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { aShardState } from '../../support/intake/fake-pushes.js';

const own = 'here';
const amber = shardName('amber');
const eu = childNeighbour('eu');
const local = aShardState(amber, 5);
const plain = aShardState(amber, 5, { plain: true });
const elsewhere = aShardState(amber, 5, { via: 'parent' });
const removed = aShardState(amber, 5, { removed: true });
const facts = { syncedTerm: 5, everSynced: true, filterHash: 'f1', cameOver: 'parent' } as const;

test('a plain write is refused for a shard elsewhere or another state of the key, and makes a shard that is not local plain', (t) => {
  const table: readonly (readonly [
    what: string,
    mutation: Mutation,
    known: typeof local | undefined,
    held: number | undefined,
    verdict: unknown,
  ])[] = [
    ['of a shard that nobody knows', aPut({}, 'absent'), undefined, undefined, [true, false, 1, true]],
    ['where a pusher has it', aPut({}, 'absent'), local, undefined, [false, true, 5, false]],
    ['where a plain writer has it', aPut({}, 'absent'), plain, undefined, [false, false, 5, true]],
    ['by the shard itself', { ...aPut({}, 'absent'), bySource: true }, local, undefined, [false, false, 5, false]],
    ['of kept names', { ...aPut({}, 3), keeps: true }, local, 3, [false, false, 5, false]],
    ['elsewhere', aPut({}, 'absent'), elsewhere, undefined, 'elsewhere'],
    ['elsewhere, where nothing is to be deleted', aDelete({}), elsewhere, undefined, 'elsewhere'],
    ['elsewhere, and takes it', { ...aPut({}, 'absent'), takes: true }, elsewhere, undefined, [true, false, 6, true]],
    ['of a removed shard', aPut({}, 'absent'), removed, undefined, [true, false, 6, true]],
    ['of what exists', aPut({}, 'absent'), local, 3, 'exists'],
    ['of what is gone', aPut({}, 3), local, undefined, 'absent'],
    ['of what has changed', aPut({}, 3), local, 4, 'changed'],
    ['a delete of whatever is there', aDelete({}), local, 4, [false, true, 5, false]],
  ];
  for (const [what, mutation, known, held, expected] of table) {
    const verdict = decideMutation(mutation, { own, known, held });
    const { isNewState, unsyncs, shard } = verdict.kind === 'write' ? verdict : { isNewState: false, unsyncs: false, shard: local };
    t.deepEqual(verdict.kind === 'refused' ? verdict.why : [isNewState, unsyncs, shard.term, shard.plain], expected, what);
    t.true(verdict.kind === 'refused' || shard.via === 'local', what);
  }
});

test('a pusher may push to a local shard of its own term, a link to a shard whose via is that link', (t) => {
  const [pusher, link]: readonly Speaker[] = [
    { kind: 'pusher', term: 5 },
    { kind: 'link', neighbour: 'parent' },
  ];
  const heard = (by: Speaker | undefined): readonly boolean[] =>
    [local, elsewhere, aShardState(amber, 6), { ...removed, via: 'local' as const }, aShardState(amber, 5, { via: eu })].map((shard) =>
      speaksFor(by!, shard),
    );

  t.deepEqual(heard(pusher), [true, false, false, false, false]);
  t.deepEqual(heard(link), [false, true, false, false, false]);
});

test('a link that opens is the same, the first, another, one whose id another child has, or one too many', (t) => {
  const meeting = (
    neighbour: typeof eu | 'parent',
    known: string | undefined,
    { links = 1, name }: { links?: number; name?: string } = {},
  ): string => {
    const push = { kind: 'meet', neighbour, cacheId: 'c1' } as const;
    const met = decideMeeting(push, { known: known === undefined ? undefined : { cacheId: known }, links, nameWith: () => name });
    return voidsShards(neighbour, met) ? `${met.kind}, and loses its shards` : met.kind;
  };

  t.is(meeting(eu, 'c1', { links: linksMax, name: 'us' }), 'same');
  t.is(meeting(eu, undefined), 'first');
  t.is(meeting(eu, 'c0'), 'another');
  t.is(meeting(eu, 'c0', { name: 'us' }), 'bound');
  t.is(meeting(eu, undefined, { links: linksMax }), 'full');
  t.is(meeting(eu, 'c0', { links: linksMax }), 'another');
  t.is(meeting('parent', undefined, { links: linksMax, name: 'us' }), 'first');
  t.is(meeting('parent', 'c0'), 'another, and loses its shards');
});

test('an end sweeps the sync that it began; only a link whose filter the slice is current under needs no begin', (t) => {
  const sync: Sync = { marks: new Marks(1), walk: undefined };
  const walking = { ...sync, walk: { number: 7 } } as Sync;
  const link = { kind: 'link', neighbour: 'parent' } as const;
  const end = (
    given: Partial<Extract<Push, { kind: 'end' }>>,
    state: Readonly<{ sync?: Sync; resumed?: number; filterHash?: string }>,
  ): string =>
    decideEnd(
      { kind: 'end', slice: aSlice(), by: link, filterHash: 'f1', ...given },
      { sync: state.sync, resumed: state.resumed, facts: { filterHash: state.filterHash ?? '' } },
    );

  t.is(end({}, { sync }), 'walk');
  t.is(end({ buckets: noBuckets }, { sync }), 'ended');
  t.is(end({}, { sync: walking, resumed: 7 }), 'walk');
  t.is(end({}, { sync: walking, resumed: 6 }), 'unbegun');
  t.is(end({}, { sync, resumed: 7 }), 'unbegun');
  t.is(end({}, { resumed: 7, filterHash: 'f1' }), 'unbegun');
  t.is(end({}, { filterHash: 'f1' }), 'synced');
  t.is(end({}, { filterHash: 'f2' }), 'unbegun');
  t.is(end({ filterHash: '' }, { filterHash: '' }), 'unbegun');
  t.is(end({ by: { kind: 'pusher', term: 5 } }, { filterHash: 'f1' }), 'unbegun');
});

test('each push that changes the state of a slice changes only the facts that it concerns', (t) => {
  const rest = { objects: 3 };
  const end = { kind: 'end', slice: aSlice(), by: { kind: 'link', neighbour: eu }, filterHash: 'f2' } as const;

  t.deepEqual(unsynced({ ...facts, ...rest }), { ...facts, ...rest, syncedTerm: 0, filterHash: '' });
  t.deepEqual(stale({ ...facts, ...rest }), { ...facts, ...rest, filterHash: '' });
  t.deepEqual(cleared({ ...facts, ...rest }), { ...neverSynced, ...rest, cameOver: 'parent' });
  t.deepEqual(assumed({ ...neverSynced, filterHash: 'f1', cameOver: eu }, 6), {
    syncedTerm: 6,
    everSynced: true,
    filterHash: 'f1',
    cameOver: '',
  });
  t.deepEqual(synced(end, local), { syncedTerm: 5, everSynced: true, filterHash: 'f2', cameOver: eu });
  t.deepEqual(synced({ ...end, term: 4 }, local), { syncedTerm: 4, everSynced: true, filterHash: 'f2', cameOver: eu });
  t.deepEqual(synced({ ...end, by: { kind: 'pusher', term: 5 } }, local), {
    syncedTerm: 5,
    everSynced: true,
    filterHash: '',
    cameOver: '',
  });
});

test('a comparison returns the held digest if it differs', (t) => {
  const asked = { kind: 'compare', slice: aSlice(), by: { kind: 'link', neighbour: 'parent' }, digest: 'd1' } as const;

  t.deepEqual(compared(asked, 'd1', facts), { kind: 'unchanged' });
  t.deepEqual(compared(asked, 'd2', facts), { kind: 'differs', digest: 'd2', isCurrent: true });
  t.deepEqual(compared(asked, 'd2', neverSynced), { kind: 'differs', digest: 'd2', isCurrent: false });
});
