import { test } from '../../support/test.js';
import { ChildShards } from '../../../src/tree/child-shards.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';
import { shardName } from '../../support/objects.js';

const [amber, birch, cedar, dune] = ['amber', 'birch', 'cedar', 'dune'].map(shardName) as [never, never, never, never];

async function twoAtMost(...states: readonly ReturnType<typeof aShardState>[]) {
  const pushes = new FakePushes();
  pushes.publish({ shards: [...states] });
  const known = pushes.state;
  return { shards: new ChildShards(known, 2), pushes };
}

test('a child may claim a bounded number of shards, including those that it already has; it may claim each of them again', async (t) => {
  const { shards } = await twoAtMost(aShardState(amber, 5, { via: 'child/east' }), aShardState(dune, 5));

  t.deepEqual(
    [birch, cedar, amber, birch].map((shard) => shards.tryAdd('child/east', shard)),
    [true, false, true, true],
  );
  t.true(shards.tryAdd('child/west', cedar), 'another child has its own');
  t.true([amber, birch, cedar, dune].every((shard) => shards.tryAdd('parent', shard)));
});

test('a shard that moved to another neighbour frees its place; a removed shard does not', async (t) => {
  const { shards, pushes } = await twoAtMost();
  t.true(shards.tryAdd('child/east', amber));
  t.true(shards.tryAdd('child/east', birch));

  pushes.publish({ shards: [aShardState(amber, 6, { removed: true }), aShardState(birch, 6, { via: 'child/east' })] });
  t.false(shards.tryAdd('child/east', cedar));
  pushes.publish({ shards: [aShardState(birch, 7, { via: 'local' })] });
  t.true(shards.tryAdd('child/east', cedar));
  t.false(shards.tryAdd('child/east', dune));
});

test('a forgotten child starts from zero', async (t) => {
  const { shards } = await twoAtMost();
  for (const shard of [amber, birch]) t.true(shards.tryAdd('child/east', shard));
  for (const shard of [amber, birch]) t.true(shards.tryAdd('child/west', shard));

  shards.leave('child/east');

  for (const shard of [cedar, dune]) t.true(shards.tryAdd('child/east', shard));
  t.false(shards.tryAdd('child/west', cedar));
});
