import { test } from '../support/test.js';
import { aKey, shardName } from '../support/objects.js';
import { aGrownTree, aPusher, everything } from './a-grown-tree.js';
import type { ModelRule } from './model-rule.js';
import { aSimObject } from './sim-objects.js';

test('every object is everywhere in seconds, and a change in less than a second', async (t) => {
  const { world, tree, amber, tookMs } = await aGrownTree();
  amber.put(aSimObject({ shard: 'amber', name: 'new' }));
  amber.remove(aKey({ shard: 'amber', name: 'one-0' }));

  const changeMs = await tree.converge(60_000);

  t.true(tookMs < 5_000, `${tookMs}`);
  t.true(changeMs < 1_000, `${changeMs}`);
  t.deepEqual(world.faults, []);
});

test('policies that change while all caches are up take effect in both directions', async (t) => {
  const { world, tree } = await aGrownTree();
  const exports: readonly ModelRule[] = [{ types: ['apiexports.apis.kcp.io'], labels: { visibility: 'public' } }];
  tree.cache('eu').changePolicies({ forward: exports });
  await tree.converge(60_000);
  const narrowed = tree.model().objects('us').length;

  tree.cache('eu').changePolicies({ forward: everything });
  await tree.converge(60_000);

  t.is(narrowed, 3);
  t.is(tree.model().objects('us').length, 6);
  t.deepEqual(world.faults, []);
});

test('changes on both sides of a partition reach the other side when it heals, however long it lasted', async (t) => {
  const { world, tree, amber, birch } = await aGrownTree();
  for (const lastsMs of [5_000, 120_000]) {
    world.network.partition('eu', 'root');
    amber.put(aSimObject({ shard: 'amber', name: `up-${lastsMs}` }));
    birch.put(aSimObject({ shard: 'birch', name: `down-${lastsMs}` }));
    await world.time.advance(lastsMs);
    world.network.heal('eu', 'root');
    await tree.converge(120_000);
  }

  t.is(tree.model().objects('eu-1').length, 10);
  t.deepEqual(world.faults, []);
});

test('a cache that crashes, is wiped or is restored from a backup ends with what the model says', async (t) => {
  const { world, tree, amber } = await aGrownTree();
  const backup = tree.cache('eu').backup();
  amber.put(aSimObject({ shard: 'amber', name: 'behind-the-backup' }));
  await tree.converge(60_000);

  tree.cache('eu').crash();
  amber.put(aSimObject({ shard: 'amber', name: 'while-eu-was-away' }));
  await world.time.advance(1_000);
  await tree.start();
  await tree.converge(120_000);
  tree.cache('eu').crash({ isNoticed: false });
  tree.cache('eu').restore(backup);
  await tree.start();
  await tree.converge(120_000);
  tree.cache('root').crash();
  tree.cache('root').wipe();
  await tree.start();
  await tree.converge(120_000);

  t.is(tree.cache('root').digests.size, 2);
  t.deepEqual(world.faults, []);
});

test('a shard moves to another cache with a later process of its pusher, and the earlier process is fenced', async (t) => {
  const { world, tree, amber } = await aGrownTree();
  const later = aPusher('amber', 2, 'process-2');
  tree.plainWrites(later, 'us');
  await tree.converge(60_000);
  amber.put(aSimObject({ shard: 'amber', name: 'too-late' }));
  await tree.converge(60_000);

  t.true(amber.isFenced);
  t.deepEqual(
    tree.caches.map((cache) => cache.via(shardName('amber'))),
    ['child/us', 'parent', 'local', 'parent'],
  );
  t.deepEqual(world.faults, []);
});

test('a cache that gets another parent takes its shards along', async (t) => {
  const { world, tree } = await aGrownTree();
  await world.time.awaited(tree.cache('eu-1').stop(), 60_000);
  tree.cache('eu-1').follow('us');
  await tree.start();
  await tree.converge(120_000);

  t.is(tree.cache('us').via(shardName('amber')), 'child/eu-1');
  t.deepEqual(world.faults, []);
});

test('the same seed gives the same run, to the byte', async (t) => {
  const run = async (seed: number): Promise<unknown> => {
    const { world, tree, amber } = await aGrownTree({}, { seed });
    world.network.set('eu', 'root', { jitterMs: 40, lossShare: 0.2 });
    for (let count = 0; count < 20; count += 1) amber.put(aSimObject({ shard: 'amber', name: `more-${count}` }));
    const tookMs = await tree.converge(60_000);
    return [tookMs, world.time.tasksRun, [...world.network.traffic('eu', 'root')], [...world.network.traffic('root', 'eu')]];
  };

  t.deepEqual(await run(3), await run(3));
});
