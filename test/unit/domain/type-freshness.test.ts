import { test } from '../../support/test.js';
import { shardFreshness, TypeFreshness, type ShardFreshness } from '../../../src/domain/type-freshness.js';
import { shardName } from '../../support/objects.js';

const connected = { kind: 'connected', forMs: 1, peer: 'x' } as const;
const slice = { whole: true, changedAgoMs: 900, lagMs: 3, sourceConnected: true } as const;

function typeFreshness(shards: readonly ShardFreshness[], isKnowing: boolean) {
  const type = new TypeFreshness();
  for (const shard of shards) type.add(shard);
  return type.report(isKnowing);
}

function aShard(name = 'amber', more: Partial<ShardFreshness> = {}): ShardFreshness {
  return { ...shardFreshness({ shard: shardName(name), connection: connected }, [slice]), ...more };
}

test('an absence counts only if the cache is ready, knows every shard, and has all objects of each', (t) => {
  t.true(typeFreshness([aShard(), aShard('birch')], true).whole);
  t.false(typeFreshness([aShard()], false).whole);
  t.false(typeFreshness([], true).whole);
  for (const [why, bad] of [
    ['something is missing', { whole: false }],
    ['nobody pushes its objects', { connection: { kind: 'away', forMs: 1 } }],
    ['nobody reports on it', { connection: { kind: 'plain' } }],
    ['its pusher has lost its source', { sourceConnected: false }],
    ['its pusher does not name the type', { sourceConnected: null, lagMs: null }],
  ] as const)
    t.false(typeFreshness([aShard(), aShard('birch', bad)], true).whole, why);
});

test('of several identities the worst counts, and a type without any report is not whole', (t) => {
  const shard = { shard: shardName('amber'), connection: connected };
  const bad = { whole: false, changedAgoMs: 5, lagMs: 70, sourceConnected: false };

  t.like(shardFreshness(shard, [slice, bad]), { slices: 2, whole: false, changedAgoMs: 5, lagMs: 70, sourceConnected: false });
  t.like(shardFreshness(shard, [slice, { ...slice, lagMs: null, sourceConnected: null }]), { lagMs: null, sourceConnected: null });
  t.like(shardFreshness(shard, []), { slices: 0, whole: false, changedAgoMs: null, lagMs: null, sourceConnected: null });
});

test('at most a hundred shards are listed by name, first those that prove no absence', (t) => {
  const all = Array.from({ length: 103 }, (_, i) => aShard(`shard-${103 - i}`, { whole: i !== 0 }));

  const { whole, shards, shardsLeftOut } = typeFreshness(all, true);

  t.deepEqual([whole, shards.length, shardsLeftOut], [false, 100, 3]);
  t.true(shards.some((shard) => !shard.whole));
  t.deepEqual(
    shards,
    shards.toSorted((a, b) => (a.shard < b.shard ? -1 : 1)),
  );
});
