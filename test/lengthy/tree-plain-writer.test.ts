/**
 * A kcp without pushing writes over plain HTTP into the lowest of three caches. It is never quiet,
 * so no cache ever assumes that its slices are synced. Each cache in turn is killed for ten
 * seconds. All objects created, updated and deleted meanwhile must be equal everywhere within three
 * seconds of its return, while the writer goes on. TEST_SEED=n repeats the writer's choices, though
 * not its timing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../support/test.js';
import { seeded } from '../support/crash/random.js';
import { aPlainWriter, type PlainWriter } from './plain-writer.js';
import { aProcessTree, type TreeCache } from '../support/crash/process-tree.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const deadMs = 10_000;
const equalMsMax = 3_000;
/** More than one, because other programs use the machine too. The first round in time is enough. */
const rounds = 2;
const patienceMs = 60_000;
const pollMs = 50;

test.serial('objects a plain writer deletes while a cache is dead are gone everywhere within three seconds of its return', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const west = await tree.start('west', { parent: root });
  const leaf = await tree.start('leaf', { parent: west });
  await tree.start('east', { parent: root });
  const writer = aPlainWriter(t, leaf, seeded(seed));
  await sleep(5_000);

  for (const dead of [root, west, leaf]) {
    let tookMs = Infinity;
    for (let round = 1; round <= rounds && tookMs > equalMsMax; round += 1) {
      const before = writer.deletes;
      await dead.process.kill();
      await sleep(deadMs);
      const deletes = writer.deletes - before;
      await dead.process.resume();
      tookMs = await equalAfter(
        () => writer.settle(),
        () => differences(tree.caches, writer),
      );
      t.log(`${dead.name} was dead for ${deadMs} ms and ${deletes} deletes: all equal ${tookMs} ms after it was back`);
      if (dead !== leaf) t.true(deletes > 100, `${deletes}`);
    }
    t.true(tookMs <= equalMsMax, `${dead.name}: ${tookMs} ms`);
    t.deepEqual(await takenForAll(leaf), []);
  }
});

async function equalAfter(settle: () => void, differ: () => Promise<readonly string[]>): Promise<number> {
  const beganMs = performance.now();
  settle();
  while ((await differ()).length > 0 && performance.now() - beganMs < patienceMs) await sleep(pollMs);
  return Math.round(performance.now() - beganMs);
}

async function differences(caches: readonly TreeCache[], writer: PlainWriter): Promise<readonly string[]> {
  const found = await Promise.all(caches.map((cache) => writer.differences(cache)));
  return found.flat();
}

/** The slices that the cache assumes to be synced. */
async function takenForAll(cache: TreeCache): Promise<readonly string[]> {
  const { shards } = await cache.status();
  return shards.flatMap(({ slices }) => slices.filter(({ syncedIn }) => syncedIn === 'assumed').map(({ resource }) => resource));
}
