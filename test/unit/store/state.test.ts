import { test } from '../../support/test.js';
import { unknownShard } from '../../../src/domain/claim.js';
import { leftLink } from '../../../src/domain/push.js';
import { shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');
const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });

test('the state has what the store held at first, and what was published since', async (t) => {
  const pushes = new FakePushes();
  pushes.publish({ shards: [aShardState(amber, 5)] });
  pushes.hold(exports, { syncedTerm: 5 });
  const known = pushes.state;

  pushes.publish({ shards: [aShardState(amber, 6)] });

  t.is(known.shard(amber)?.term, 6);
  t.is(known.slice(exports)?.syncedTerm, 5);
  t.deepEqual(
    [...known.slicesOf(amber)].map(({ slice }) => slice.resource),
    [exports.resource],
  );
  t.deepEqual([...known.shards].length, 1);
});

test('the state has nothing of a shard that the store has forgotten', async (t) => {
  const pushes = new FakePushes();
  pushes.publish({ shards: [aShardState(amber, 5, { removed: true })] });
  const known = pushes.state;

  pushes.publish({ shards: [unknownShard(amber)] });

  t.deepEqual([known.shard(amber), known.shardCount, [...known.shards]], [undefined, 0, []]);
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
    pushes.publish({ shards: [shard] });
    pushes.hold(exports, { syncedTerm: synced });

    t.is(pushes.state.isSynced(exports), isSynced, what);
  }
});

test('an unknown type of a shard is not synced, unless a plain writer of the present term counts as synced in every type', async (t) => {
  for (const [plain, synced, isSynced] of [
    [false, 5, false],
    [true, 5, true],
    [true, 4, false],
  ] as const) {
    const pushes = new FakePushes();
    pushes.publish({ shards: [aShardState(amber, 5, { plain })] });
    pushes.hold(exports, { syncedTerm: synced });

    t.is(pushes.state.isSynced(schemas), isSynced);
  }
});

test('the slices of a type are found on each shard, for every identity or for one, until they or their shard are forgotten', async (t) => {
  const birch = shardName('birch');
  const [one, other] = ['one', 'other'].map((identity) => aSlice({ group: 'machines.svm.io', resource: 'instances', identity }));
  const pushes = new FakePushes();
  pushes.publish({ shards: [aShardState(amber, 5), aShardState(birch, 5)] });
  for (const slice of [exports, schemas, one!, other!, { ...exports, shard: birch }]) pushes.hold(slice, { syncedTerm: 5 });
  const known = pushes.state;
  const found = (resource: string, identity?: string): readonly string[] =>
    known
      .slicesOfType({ group: resource === 'instances' ? 'machines.svm.io' : exports.resource.group, resource, identity })
      .flatMap((slices) => [...slices.values()].map(({ slice }) => `${slice.shard} ${slice.resource.identity}`.trim()));

  t.deepEqual(found('apiexports'), ['amber', 'birch']);
  t.deepEqual(found('instances'), ['amber one', 'amber other']);
  t.deepEqual(found('instances', 'other'), ['amber other']);
  t.deepEqual([found('instances', 'none'), found('unheard')], [[], []]);

  pushes.publish({ slices: [{ ...known.slice(one!)!, objects: 0, syncedTerm: 0, everSynced: false }] });
  t.deepEqual(found('instances'), ['amber other']);
  pushes.publish({ shards: [unknownShard(amber)] });
  t.deepEqual([found('apiexports'), found('instances')], [['birch'], []]);
  t.deepEqual([...known.names], [birch]);
});

test('a follower finds the new state when it is called, and is not called after it has left', (t) => {
  const pushes = new FakePushes();
  const terms: (number | undefined)[] = [];
  const follower = (): void => void terms.push(pushes.state.shard(amber)?.term);
  const [first] = [pushes.state.follow(follower), pushes.state.follow(follower)];

  pushes.publish({ shards: [aShardState(amber, 5)] });
  first.cancel();
  pushes.publish({ shards: [aShardState(amber, 6)] });

  t.deepEqual(terms, [5, 5, 6]);
});

test('a link is known from its first commit on until it leaves', (t) => {
  const pushes = new FakePushes();
  const link = { neighbour: 'parent', cacheId: 'c0', position: '7' } as const;

  pushes.publish({ links: [link] });
  t.deepEqual([pushes.state.link('parent'), [...pushes.state.links]], [link, [link]]);
  pushes.publish({ links: [leftLink('parent')] });
  t.deepEqual([pushes.state.link('parent'), [...pushes.state.links]], [undefined, []]);
});
