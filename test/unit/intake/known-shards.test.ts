import { test } from '../../support/test.js';
import { unknownShard } from '../../../src/domain/claim.js';
import { KnownShards } from '../../../src/intake/known-shards.js';
import { shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');
const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });

test('it knows what the store had when it opened, and what the store has published since', async (t) => {
  const pushes = new FakePushes();
  pushes.shardStates.push(aShardState(amber, 5));
  pushes.hold(exports, { syncedTerm: 5 });
  const known = await KnownShards.open(pushes);

  for (const listener of pushes.listeners) listener({ shards: [aShardState(amber, 6)], slices: [] });

  t.is(known.shard(amber)?.term, 6);
  t.is(known.slice(exports)?.syncedTerm, 5);
  t.deepEqual(known.resourcesOf(amber), [exports.resource]);
  t.deepEqual([...known.shards].length, 1);
});

test('it knows nothing of a shard that the store has forgotten', async (t) => {
  const pushes = new FakePushes();
  pushes.shardStates.push(aShardState(amber, 5, { removed: true }));
  const known = await KnownShards.open(pushes);

  for (const listener of pushes.listeners) listener({ shards: [unknownShard(amber)], slices: [] });

  t.deepEqual([known.shard(amber), known.count, [...known.shards]], [undefined, 0, []]);
});

test('a change published while it reads the store is newer than what it reads', async (t) => {
  const pushes = new FakePushes();
  pushes.shardStates.push(aShardState(amber, 5));
  pushes.hold(exports, { syncedTerm: 5 });
  const opening = KnownShards.open(pushes);

  const [held] = pushes.sliceStates;
  for (const listener of pushes.listeners)
    listener({ shards: [aShardState(amber, 7)], slices: held === undefined ? [] : [{ ...held, syncedTerm: 7 }] });
  const known = await opening;

  t.is(known.shard(amber)?.term, 7);
  t.is(known.slice(exports)?.syncedTerm, 7);
});

test('a slice is synced only if the present term of its shard synced it', async (t) => {
  const table = [
    ['synced by the holder of the shard', aShardState(amber, 5), 5, true],
    ['synced by an earlier one', aShardState(amber, 6), 5, false],
    ['synced by nobody', aShardState(amber, 5), 0, false],
    ['of a removed shard', aShardState(amber, 5, { removed: true }), 5, false],
  ] as const;
  for (const [what, shard, synced, isSynced] of table) {
    const pushes = new FakePushes();
    pushes.shardStates.push(shard);
    pushes.hold(exports, { syncedTerm: synced });

    t.is((await KnownShards.open(pushes)).isSynced(exports), isSynced, what);
  }
});

test('an unknown type of a shard is not synced, unless a plain writer of the present term counts as synced in any type', async (t) => {
  for (const [plain, synced, isSynced] of [
    [false, 5, false],
    [true, 5, true],
    [true, 4, false],
  ] as const) {
    const pushes = new FakePushes();
    pushes.shardStates.push(aShardState(amber, 5, { plain }));
    pushes.hold(exports, { syncedTerm: synced });

    t.is((await KnownShards.open(pushes)).isSynced(schemas), isSynced);
  }
});

test('the slices of a type are found on each shard, of each identity or of one, until they or their shard are forgotten', async (t) => {
  const birch = shardName('birch');
  const [one, other] = ['one', 'other'].map((identity) => aSlice({ group: 'machines.svm.io', resource: 'instances', identity }));
  const pushes = new FakePushes();
  pushes.shardStates.push(aShardState(amber, 5), aShardState(birch, 5));
  for (const slice of [exports, schemas, one!, other!, { ...exports, shard: birch }]) pushes.hold(slice, { syncedTerm: 5 });
  const known = await KnownShards.open(pushes);
  const found = (resource: string, identity?: string): readonly string[] =>
    known
      .slicesOfType({ group: resource === 'instances' ? 'machines.svm.io' : exports.resource.group, resource, identity })
      .flatMap((slices) => [...slices.values()].map(({ slice }) => `${slice.shard} ${slice.resource.identity}`.trim()));
  const learn = (changed: Parameters<Parameters<FakePushes['follow']>[0]>[0]): void => {
    for (const listener of pushes.listeners) listener(changed);
  };

  t.deepEqual(found('apiexports'), ['amber', 'birch']);
  t.deepEqual(found('instances'), ['amber one', 'amber other']);
  t.deepEqual(found('instances', 'other'), ['amber other']);
  t.deepEqual([found('instances', 'none'), found('unheard')], [[], []]);

  learn({ shards: [], slices: [{ ...known.slice(one!)!, objects: 0, syncedTerm: 0, everSynced: false }] });
  t.deepEqual(found('instances'), ['amber other']);
  learn({ shards: [unknownShard(amber)], slices: [] });
  t.deepEqual([found('apiexports'), found('instances')], [['birch'], []]);
  t.deepEqual([...known.names], [birch]);
});

test('after close it ignores further changes', async (t) => {
  const pushes = new FakePushes();
  const known = await KnownShards.open(pushes);

  known.close();

  t.is(pushes.listeners.size, 0);
});
