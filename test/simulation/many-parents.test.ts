/** A file of its own, because 257 moves take half the processor time that a file may take. */
import { largeTest } from '../support/sizes.js';
import { shardName } from '../support/objects.js';
import { aGrownTree } from './a-grown-tree.js';
import { aSimObject } from './sim-objects.js';

const amberShard = shardName('amber');

largeTest('a cache that has changed its parent 257 times and then loses its disk is still found on its path', async (t) => {
  const { world, tree, amber } = await aGrownTree();
  const moving = tree.cache('eu-1');
  for (let move = 1; move <= 257; move += 1) {
    await world.time.awaited(moving.stop(), 60_000);
    moving.follow(move % 2 === 1 ? 'us' : 'eu');
    await tree.start();
    await tree.converge(120_000);
  }

  moving.crash({ isNoticed: false });
  moving.wipe();
  moving.follow('us');
  await tree.start();
  amber.put(aSimObject({ shard: 'amber', name: 'since' }));
  await tree.converge(120_000);

  t.is(tree.cache('root').via(amberShard), 'child/us');
  t.false(amber.isFenced);
  t.deepEqual(world.faults, []);
});
