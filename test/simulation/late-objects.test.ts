/**
 * Recreated names: a plain writer creates, changes, deletes and recreates a few objects of several
 * types, one of them declared. Meanwhile a cache above its own is dead for ten seconds. In the
 * first rounds the shard does not count as synced, later it does. Time is virtual, so the bound is
 * exact. Each run grows other trees. TEST_SEED=n repeats one; TEST_TREES=n grows more.
 */
import { rounds } from '../support/sizes.js';
import { test } from '../support/test.js';
import { seeded, type Random } from '../support/crash/random.js';
import { shardName } from '../support/objects.js';
import { aGrownTree } from './a-grown-tree.js';
import { LateObjects } from './late-objects.js';
import { aSimDeclaration, aSimObject, declaredResource, resourcesOf, simResources } from './sim-objects.js';
import { SimWriter } from './sim-writer.js';

const plum = shardName('plum');
const { TEST_TREES: trees = rounds(5), TEST_SEED: only } = process.env;
const first = Date.now() % 1_000_000_000;
const seeds = only !== undefined ? [Number(only)] : Array.from({ length: Number(trees) }, (_, i) => first + i);
const deadMs = 10_000;
const lookMs = 6_000;
const stepMs = 20;
const lateMsMax = 3_000;
const quietMs = 45_000;

for (const [index, seed] of seeds.entries())
  test(`objects that are recreated under the same names are equal everywhere three seconds after a dead cache is back, tree ${index + 1}`, async (t) => {
    t.log(`TEST_SEED=${seed}`);
    const random = seeded(seed);
    const { world, tree } = await aGrownTree({}, { seed });
    const late = new LateObjects(world, { shard: plum, origin: 'eu-1', others: ['eu', 'root', 'us'] });
    const writer = aRecreatingWriter();
    tree.plainWrites(writer, 'eu-1');
    let isWriting = true;
    let isOver = false;
    let writes = 0;
    const writing = (): void => {
      writes += 1;
      if (isWriting) changeOne(writer, random, writes);
      if (!isOver) world.time.after(20 + random.below(150), writing);
    };
    writing();
    await world.time.advance(15_000);

    const latest: number[] = [];
    for (const round of [1, 2, 3, 4]) {
      const dead = tree.cache(random.chance(0.5) ? 'root' : 'eu');
      dead.crash({ underWay: random.chance(0.5) ? 'lost' : 'kept' });
      await world.time.advance(deadMs);
      await dead.start();
      const { lateMs, what } = await late.latestFor(lookMs, stepMs);
      latest.push(lateMs);
      t.true(lateMs <= lateMsMax, `round ${round}: ${what} was ${lateMs} ms late after the death of ${dead.name}`);
      if (round !== 2) continue;
      isWriting = false;
      await world.time.advance(quietMs);
      t.true([...tree.cache('eu-1').known.slicesOf(plum)].every(({ syncedTerm }) => syncedTerm !== 0));
      isWriting = true;
      await world.time.advance(1_000);
    }

    t.log(`${writes} writes, the latest object of each round: ${latest.join(', ')} ms`);
    isOver = true;
    await tree.converge(60_000);
    t.is(world.warnings.get('link.digest-differs'), undefined);
    t.deepEqual(world.faults, []);
  });

function aRecreatingWriter(): SimWriter {
  const beat = (content: number) => aSimObject({ shard: plum, name: 'beat' }, { spec: { content } });
  const writer = new SimWriter({ shard: plum, resources: resourcesOf(plum), beat });
  writer.put(aSimDeclaration(plum));
  return writer;
}

function changeOne(writer: SimWriter, random: Random, content: number): void {
  const resources = [...simResources, declaredResource(plum)];
  const resource = resources[random.below(resources.length)]!;
  const place = { shard: plum, ...resource, name: `n${random.below(8)}` };
  if (random.chance(0.4)) writer.remove(aSimObject(place));
  else writer.put(aSimObject(place, { spec: { content } }));
}
