/**
 * A kcp without pushing writes over plain HTTP into the lowest of three caches and is never quiet, so that no cache takes its objects
 * for a full sync. Each cache is killed for ten seconds in turn. What was created, updated and deleted meanwhile is so everywhere within
 * three seconds of its return, measured while the writer goes on. TEST_SEED=n repeats its choices, though not its timing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../support/test.js';
import { seeded } from '../support/crash/random.js';
import { aPlainWriter, type PlainWriter } from './plain-writer.js';
import { aTierTree, type TierCache } from '../support/crash/tier-tree.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const deadMs = 10_000;
const equalMsMax = 3_000;
/** On a machine that others use too. */
const rounds = 2;
const patienceMs = 60_000;
const pollMs = 50;

test.serial('what a busy plain writer deletes while a cache is dead is gone everywhere within three seconds of its return', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const tree = await aTierTree(t);
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

async function differences(caches: readonly TierCache[], writer: PlainWriter): Promise<readonly string[]> {
  const found = await Promise.all(caches.map((cache) => writer.differences(cache)));
  return found.flat();
}

/** The slices that were synced, or count as synced. */
async function takenForAll(cache: TierCache): Promise<readonly string[]> {
  const { shards } = await cache.status();
  return shards.flatMap(({ slices }) => slices.filter(({ syncedIn }) => syncedIn === 'assumed').map(({ resource }) => resource));
}
