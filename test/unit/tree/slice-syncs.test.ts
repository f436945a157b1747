import { setImmediate as turn } from 'node:timers/promises';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { ShardState } from '../../../src/domain/claim.js';
import type { SliceState } from '../../../src/domain/push.js';
import { childNeighbour, flows, type Neighbour } from '../../../src/domain/via.js';
import type { Slice } from '../../../src/domain/slice.js';
import type { InventorySlice } from '../../../src/frames/frame.js';
import { PeerInventory } from '../../../src/tree/links/inventory.js';
import { SliceSyncs } from '../../../src/tree/syncs/slice-syncs.js';
import { LinkFilter } from '../../../src/tree/filters/link-filter.js';
import type { SliceSync } from '../../../src/tree/syncs/slice-sync.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aPolicy, type WrittenRule } from '../../support/link-rules.js';
import { shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';

const amber = shardName('amber');
const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });
const declarations = aSlice({ group: 'cache.kcp.io', resource: 'clustercachedresources' });
const everything: WrittenRule = { types: ['*'] };
const noSchemas: WrittenRule = { types: ['apiexports.apis.kcp.io'] };

function aFilter(...rules: readonly WrittenRule[]): LinkFilter {
  return new LinkFilter(aPolicy(...rules), aPolicy(everything));
}

function heldAt(filter: LinkFilter, slice: Slice, syncedTerm = 5): InventorySlice {
  return { slice, filterHash: filter.hashOf(slice), syncedTerm };
}

type RigOptions = Readonly<{
  shard?: ShardState;
  slices?: readonly Slice[];
  held?: readonly InventorySlice[];
  filter?: LinkFilter;
  to?: Neighbour;
  canResume?: boolean;
  isSynced?: (slice: Slice) => boolean;
  turn?: () => Promise<void>;
}>;

/** The slice syncs, and the store that they follow. */
async function someSyncs({
  shard,
  slices = [],
  held = [],
  filter = aFilter(everything),
  to = 'parent',
  canResume = true,
  isSynced,
  turn = async () => {},
}: RigOptions = {}) {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  pushes.publish({ shards: [shard ?? aShardState(amber, 5)] });
  for (const slice of slices) pushes.hold(slice, { syncedTerm: 5 });
  const known = pushes.state;
  const rung = { times: 0 };
  const store = { published: 0 };
  const notify = (): void => void (rung.times += 1);
  const heldThere = new PeerInventory();
  heldThere.update(held);
  const syncs = new SliceSyncs(
    {
      known,
      isSynced: isSynced ?? ((slice) => known.isSynced(slice)),
      canArrive: () => true,
      unknown: () => {},
      published: () => store.published,
      clock,
      random: () => 0,
      notify,
    },
    { to, filter, held: heldThere, canResume },
  );
  /** The other end chooses this end for the shard, if it can. */
  const hear = (state: ShardState): Promise<number> =>
    syncs.learnChoice(aClaimFrame({ ...state, isYours: flows(state.via, to) }), async () => {});
  await hear(shard ?? aShardState(amber, 5));
  await syncs.open(turn);
  const report = (shards: readonly ShardState[], states: readonly Partial<SliceState>[] = [], isHeard = true): void => {
    const full = states.map((state) => {
      pushes.hold(state.slice ?? exports, state);
      return pushes.state.slice(state.slice ?? exports);
    });
    const received = full.filter((state) => state !== undefined);
    pushes.publish({ shards, slices: received });
    for (const state of shards) syncs.followShard(state.shard);
    if (isHeard) for (const state of shards) void hear(state);
    syncs.followSlices(received.map(({ slice }) => slice));
  };
  const phases = (): Readonly<Record<string, string>> =>
    Object.fromEntries([...syncs.all()].map(({ slice, phase }) => [slice.resource.resource, phase]));
  return { syncs, clock, report, phases, rung, filter, store };
}

/** Syncs each waiting slice at once, so that it gets its end when due. */
function syncAll(syncs: SliceSyncs): readonly string[] {
  const synced: string[] = [];
  for (let sync = syncs.takeWaiting(0); sync !== undefined; sync = syncs.takeWaiting(0)) {
    synced.push(sync.slice.resource.resource);
    sync.step('begun');
    sync.step('walked');
    syncs.mayBeDue(sync);
  }
  return synced;
}

function endAll(syncs: SliceSyncs): readonly string[] {
  const ended: string[] = [];
  for (let due = syncs.takeDue(0); due !== undefined; due = syncs.takeDue(0)) {
    ended.push(`${due.sync.slice.resource.resource} for ${due.term}`);
    due.sync.step('ended');
    due.sync.endedFor = due.term;
  }
  return ended;
}

function only(syncs: SliceSyncs): SliceSync {
  const [sync] = syncs.all();
  if (sync === undefined) throw new Error('there is no slice sync');
  return sync;
}

test('a slice is sent if the via of its shard allows it, and the link filter covers it or the other end holds it', async (t) => {
  const narrow = aFilter(noSchemas);
  const table: readonly (readonly [string, RigOptions, Readonly<Record<string, string>>])[] = [
    ['local, up', { slices: [exports] }, { apiexports: 'new' }],
    ['of a child, up', { slices: [exports], shard: aShardState(amber, 5, { via: 'child/c' }) }, { apiexports: 'new' }],
    ['of the parent, up', { slices: [exports], shard: aShardState(amber, 5, { via: 'parent' }) }, {}],
    ['of the parent, down', { slices: [exports], shard: aShardState(amber, 5, { via: 'parent' }), to: 'child/c' }, { apiexports: 'new' }],
    ['of that very child', { slices: [exports], shard: aShardState(amber, 5, { via: 'child/c' }), to: 'child/c' }, {}],
    ['of nobody', { slices: [exports], shard: aShardState(amber, 5, { removed: true }), held: [heldAt(narrow, exports)] }, {}],
    ['not covered', { slices: [schemas], filter: narrow }, {}],
    [
      'not covered, but held',
      { slices: [schemas], filter: narrow, held: [heldAt(aFilter(everything), schemas)] },
      { apiresourceschemas: 'waiting' },
    ],
    ['not known, but held', { held: [{ slice: exports, filterHash: '', syncedTerm: 0 }] }, { apiexports: 'waiting' }],
    ['held, of a shard that is not known', { held: [{ slice: aSlice({ shard: 'birch' }), filterHash: '', syncedTerm: 0 }] }, {}],
  ];
  for (const [what, options, expected] of table) {
    const { phases } = await someSyncs(options);

    t.deepEqual(phases(), expected, what);
  }
});

test('a slice goes on by changes if the other end is current under the same filter hash and the log reaches back far enough', async (t) => {
  const filter = aFilter(everything);
  const table: readonly (readonly [string, RigOptions, string])[] = [
    ['current', { held: [heldAt(filter, exports)] }, 'current'],
    ['another link filter', { held: [heldAt(aFilter({ labels: 'tier' }), exports)] }, 'waiting'],
    ['stale', { held: [{ slice: exports, filterHash: '', syncedTerm: 0 }] }, 'waiting'],
    ['not held', {}, 'new'],
    ['behind the log', { held: [heldAt(filter, exports)], canResume: false }, 'waiting'],
  ];
  for (const [what, options, expected] of table) {
    const { phases } = await someSyncs({ slices: [exports], filter, ...options });

    t.deepEqual(phases(), { apiexports: expected }, what);
  }
});

test('changes of a slice that waits for its sync are sent if the other end may hold objects of it', async (t) => {
  const { syncs } = await someSyncs({ slices: [exports, schemas], held: [{ slice: exports, filterHash: '', syncedTerm: 0 }] });
  const [held, fresh] = [syncs.of(exports), syncs.of(schemas)];
  t.deepEqual([held?.sendsChanges, fresh?.sendsChanges], [true, false]);

  syncAll(syncs);
  syncs.makeAllDue();

  t.deepEqual([held?.phase, fresh?.phase], ['waiting', 'waiting']);
  t.deepEqual([held?.sendsChanges, fresh?.sendsChanges], [true, true]);
});

test('a slice that is reported as held, or becomes known, only after the link has moved on is synced', async (t) => {
  const { syncs, phases, report, filter } = await someSyncs({ slices: [] });

  syncs.receiveInventory([heldAt(filter, exports)]);
  report([], [{ slice: schemas }]);

  t.deepEqual(phases(), { apiexports: 'waiting', apiresourceschemas: 'new' });
});

test('an end is sent while the slice is synced here, again for each new term, and never twice for one term', async (t) => {
  const { syncs, report } = await someSyncs({ slices: [exports] });
  syncAll(syncs);

  t.deepEqual(endAll(syncs), ['apiexports for 5']);
  report([], [{ slice: exports, syncedTerm: 5, objects: 9 }]);
  t.deepEqual(endAll(syncs), []);
  report([aShardState(amber, 6)]);
  t.deepEqual(endAll(syncs), []);
  report([], [{ slice: exports, syncedTerm: 6 }]);
  t.deepEqual(endAll(syncs), ['apiexports for 6']);
});

test('a slice that goes on by changes gets an end only for a newer term', async (t) => {
  const filter = aFilter(everything);
  const same = await someSyncs({ slices: [exports], filter, held: [heldAt(filter, exports, 5)] });
  const newer = await someSyncs({ slices: [exports], filter, held: [heldAt(filter, exports, 4)] });

  t.deepEqual(endAll(same.syncs), []);
  t.deepEqual(endAll(newer.syncs), ['apiexports for 5']);
});

test('a slice that is not synced here is sent, and gets its end once it is synced', async (t) => {
  const { syncs, report, phases } = await someSyncs({ slices: [] });
  report([], [{ slice: exports, syncedTerm: 0 }]);

  t.deepEqual(syncAll(syncs), ['apiexports']);
  t.deepEqual(endAll(syncs), []);
  t.deepEqual(phases(), { apiexports: 'sent' });
  report([], [{ slice: exports, syncedTerm: 5 }]);
  t.deepEqual(endAll(syncs), ['apiexports for 5']);
});

test('once a plain writer counts as synced, its slices get their ends, even those to which it wrote nothing', async (t) => {
  const shard = aShardState(amber, 5, { plain: true });
  const { syncs, report } = await someSyncs({ shard, held: [{ slice: schemas, filterHash: '', syncedTerm: 0 }] });
  report([], [{ slice: exports, syncedTerm: 0 }]);
  syncAll(syncs);
  t.deepEqual(endAll(syncs), []);

  report([], [{ slice: exports, syncedTerm: 5 }]);

  t.deepEqual([...endAll(syncs)].toSorted(), ['apiexports for 5', 'apiresourceschemas for 5']);
});

test('an end follows everything that was published when the slice became whole', async (t) => {
  const { syncs, store } = await someSyncs({ slices: [exports] });
  store.published = 10;
  syncAll(syncs);

  t.is(syncs.takeDue(9), undefined);
  store.published = 20;
  t.is(syncs.takeDue(9), undefined);
  t.is(syncs.takeDue(10)?.sync.slice.resource.resource, 'apiexports');
});

test('a slice that the other end may take for current is invalidated once before its resync, under any filter hash', async (t) => {
  const { syncs } = await someSyncs({ slices: [exports], held: [{ slice: exports, filterHash: 'another', syncedTerm: 5 }] });
  t.deepEqual(
    syncs.takeStale(2).map(({ slice }) => slice.resource.resource),
    ['apiexports'],
  );
  t.deepEqual(syncs.takeStale(1), []);
  syncAll(syncs);
  endAll(syncs);
  t.deepEqual(syncs.takeStale(1), []);

  syncs.makeDue(only(syncs), 1_000);

  t.deepEqual(syncs.takeStale(1), [only(syncs)]);
  t.deepEqual(syncs.takeStale(1), []);
  t.is(syncs.takeWaiting(0), undefined);
});

test('a slice that the filter no longer covers is synced as empty; a slice that it covers differently is resynced', async (t) => {
  const { syncs, phases } = await someSyncs({ slices: [exports, schemas] });
  syncAll(syncs);
  endAll(syncs);

  await syncs.changeFilter(aFilter(noSchemas), async () => {});

  t.deepEqual(phases(), { apiexports: 'current', apiresourceschemas: 'waiting' });
  t.false(syncs.filter.covers(schemas));
  await syncs.changeFilter(aFilter({ ...noSchemas, labels: 'tier' }), async () => {});
  t.deepEqual(phases(), { apiexports: 'waiting', apiresourceschemas: 'waiting' });
});

test('a slice that a new filter covers is synced', async (t) => {
  const { syncs, phases } = await someSyncs({ slices: [exports, schemas], filter: aFilter(noSchemas) });
  t.deepEqual(phases(), { apiexports: 'new' });

  await syncs.changeFilter(aFilter(everything), async () => {});

  t.deepEqual(phases(), { apiexports: 'new', apiresourceschemas: 'new' });
});

test('a shard that moves to the other end of the link is no longer sent; when it comes back, all of it is synced', async (t) => {
  const filter = aFilter(everything);
  const { syncs, report, phases } = await someSyncs({
    slices: [exports],
    filter,
    held: [heldAt(filter, exports), heldAt(filter, schemas)],
  });

  report([aShardState(amber, 6, { via: 'parent' })]);

  t.deepEqual(phases(), {});
  t.is(syncs.takeWaiting(0), undefined);
  t.is(syncs.takeDue(0), undefined);
  await turn();
  report([aShardState(amber, 7)]);
  await turn();
  t.deepEqual(phases(), { apiexports: 'new' });
});

test('a slice that the other end takes for current is invalidated if its shard had no via here for a while', async (t) => {
  const filter = aFilter(everything);
  const shard = aShardState(amber, 5, { via: 'parent' });
  const { syncs, report, phases } = await someSyncs({
    to: childNeighbour('east'),
    shard,
    slices: [exports],
    filter,
    held: [heldAt(filter, exports)],
  });
  t.deepEqual(phases(), { apiexports: 'current' });

  // The other end keeps its via meanwhile.
  report([{ ...shard, via: undefined }], [], false);
  report([{ ...shard, term: 6 }], [], false);

  t.deepEqual(syncs.takeStale(1), [only(syncs)]);
});

test('slices of declarations are synced first, the others in order of arrival', async (t) => {
  const { syncs } = await someSyncs({ slices: [exports, schemas, declarations] });

  t.deepEqual(syncAll(syncs), ['clustercachedresources', 'apiexports', 'apiresourceschemas']);
});

test('a slice of a declared type waits until everything published before it is sent, because that may hold its declaration', async (t) => {
  const ofDeclared = aSlice({ group: 'machines.svm.io', resource: 'instances', identity: 'A1' });
  const { syncs, store, report } = await someSyncs();
  store.published = 7;

  report([], [{ slice: ofDeclared }, { slice: exports }]);

  t.is(syncs.takeWaiting(6)?.slice.resource.resource, 'apiexports');
  t.is(syncs.takeWaiting(6), undefined);
  t.is(syncs.takeWaiting(7)?.slice.resource.resource, 'instances');
  t.is(syncs.takeWaiting(7), undefined);
});

test('a slice wanted after a delay waits that long and notifies; a later request without a delay overrides it', async (t) => {
  const { syncs, clock, rung, phases } = await someSyncs({ slices: [exports] });
  syncAll(syncs);
  const sync = only(syncs);

  syncs.makeDue(sync, 1_000);
  t.is(syncs.takeWaiting(0), undefined);
  t.deepEqual(phases(), { apiexports: 'waiting' });
  clock.advance(1_000);
  t.is(rung.times, 1);
  t.is(syncs.takeWaiting(0), sync);

  syncs.makeDue(sync, 1_000);
  syncs.makeDue(sync);
  t.is(syncs.takeWaiting(0), sync);
  clock.advance(1_000);
  t.is(syncs.takeWaiting(0), undefined);
});

test('a shard that the other end repeatedly takes from here is synced after growing waits, which are reported', async (t) => {
  const { syncs, clock } = await someSyncs({ slices: [exports], canResume: false });
  const choose = (isYours: boolean): Promise<number> =>
    syncs.learnChoice(aClaimFrame({ ...aShardState(amber, 5), isYours }), async () => {});

  const waits: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    await choose(false);
    waits.push(await choose(true));
  }

  t.deepEqual(waits, [500, 1_000, 2_000]);
  t.is(syncs.takeWaiting(0), undefined);
  clock.advance(2_000);
  t.is(syncs.takeWaiting(0)?.slice.resource.resource, 'apiexports');
});

test('when the link is behind the log, every slice that it sends is synced again', async (t) => {
  const filter = aFilter(everything);
  const { syncs } = await someSyncs({ slices: [exports, schemas], filter, held: [heldAt(filter, exports)] });
  syncs.makeAllDue();

  t.deepEqual([...syncAll(syncs)].toSorted(), ['apiexports', 'apiresourceschemas']);
});

test('close cancels every timer and slice', async (t) => {
  const { syncs, clock } = await someSyncs({ slices: [exports] });
  syncAll(syncs);
  syncs.makeDue(only(syncs), 1_000);

  syncs.close();

  t.is(clock.pending, 0);
  t.deepEqual([...syncs.all()], []);
});

test('slices are counted as they move, are refused, are resynced and leave', async (t) => {
  const { syncs, report } = await someSyncs({ slices: [exports, schemas] });
  t.deepEqual(syncs.tally, { slices: 2, current: 0, refused: 0 });
  syncAll(syncs);
  endAll(syncs);
  t.deepEqual(syncs.tally, { slices: 2, current: 2, refused: 0 });

  const sync = syncs.of(exports);
  if (sync === undefined) throw new Error('there is no slice sync');
  sync.isRefused = true;
  sync.isRefused = true;
  syncs.makeDue(sync);
  t.deepEqual(syncs.tally, { slices: 2, current: 1, refused: 1 });
  report([aShardState(amber, 6, { via: 'parent' })]);
  t.deepEqual(syncs.tally, { slices: 0, current: 0, refused: 0 });
});

test('the slice that was looked up last is no longer found once it has left', async (t) => {
  const { syncs, report } = await someSyncs({ slices: [exports] });
  t.truthy(syncs.of(exports));

  report([aShardState(amber, 6, { via: 'parent' })]);
  t.is(syncs.of(exports), undefined);
});

const many = 100_000;

function heldMany(count: number): readonly InventorySlice[] {
  const filter = aFilter(everything);
  return Array.from({ length: count }, (_, i) => heldAt(filter, aSlice({ resource: `r${i}` })));
}

test('other work runs within a shard of many slices: at the opening, after a change of policies, and when the other end takes it', async (t) => {
  let turns = 0;
  const turn = async (): Promise<void> => void (turns += 1);
  const { syncs } = await someSyncs({ held: heldMany(many / 10), turn });
  const opening = turns;
  turns = 0;

  await syncs.changeFilter(aFilter(noSchemas), turn);
  const changing = turns;
  await syncs.learnChoice(aClaimFrame({ ...aShardState(amber, 5), isYours: false }), turn);
  syncs.receiveInventory(heldMany(many / 10));
  turns = 0;
  await syncs.learnChoice(aClaimFrame({ ...aShardState(amber, 5), isYours: true }), turn);

  t.true(opening >= 50, `${opening}`);
  t.true(changing >= 50, `${changing}`);
  t.true(turns >= 50, `${turns}`);
});

test('a change of a plain shard marks all of its slices only when its writes begin or cease to count as synced', async (t) => {
  const plain = aShardState(amber, 5, { plain: true });
  const { syncs, report } = await someSyncs({ shard: plain, slices: [exports], held: heldMany(100) });
  const markedBy = (state: Partial<SliceState>): number => {
    syncs.marked.clear();
    report([], [{ slice: exports, ...state }]);
    return syncs.marked.size;
  };
  markedBy({ syncedTerm: 5 });

  t.is(markedBy({ syncedTerm: 5, objects: 7 }), 1);
  t.true(markedBy({ syncedTerm: 0 }) > 100);
  t.is(markedBy({ syncedTerm: 0, objects: 8 }), 1);
  t.true(markedBy({ syncedTerm: 5 }) > 100);
  // No slice is synced yet under the new term of the shard.
  report([aShardState(amber, 6, { plain: true })]);
  t.true(markedBy({ syncedTerm: 6 }) > 100);
});

largeTest('void ends are skipped some at a time', async (t) => {
  const { syncs, store } = await someSyncs({ held: heldMany(many), filter: aFilter(noSchemas), isSynced: () => true });
  store.published = 1;
  syncAll(syncs);
  while (syncs.hasDue(0)) syncs.takeDue(0);
  await syncs.learnChoice(aClaimFrame({ ...aShardState(amber, 5), isYours: false }), async () => {});

  let turns = 0;
  for (; syncs.hasDue(1); turns += 1) t.is(syncs.takeDue(1), undefined);
  t.true(turns >= 50, `${turns}`);
});
