/**
 * Objects that a plain writer writes to a leaf must be equal at its parent within three seconds of
 * the parent's return. Meanwhile the writer goes on with the same names and several types. In the
 * first half of the rounds the shard does not count as synced, in the second it does. TEST_SEED=n
 * repeats the choices, though not their timing; TEST_ROUNDS=n sets the number of rounds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../support/test.js';
import { Lateness } from '../support/lateness.js';
import { until } from '../support/test-server.js';
import { seeded } from '../support/crash/random.js';
import { aRecreatingWriter, differencesBetween } from './recreating-writer.js';
import { aProcessTree, type TreeCache } from '../support/crash/process-tree.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const rounds = Number(process.env['TEST_ROUNDS'] ?? 2);
const deadMs = 10_000;
const lookMs = 5_000;
const lookEveryMs = 50;
const lateMsMax = 3_000;

test.serial('objects recreated under the same names are equal at a parent within three seconds of its return', async (t) => {
  t.timeout(rounds * 60_000 + 180_000);
  t.log(`TEST_SEED=${seed}`);
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const leaf = await tree.start('leaf', { parent: root });
  const writer = await aRecreatingWriter(t, leaf, seeded(seed));
  await sleep(3_000);

  for (let round = 1; round <= rounds; round += 1) {
    const writesBefore = writer.writes;
    await root.process.kill();
    await sleep(deadMs);
    await root.process.resume();
    const lateness = new Lateness();
    for (const backMs = performance.now(); performance.now() - backMs < lookMs; await sleep(lookEveryMs)) {
      const beganMs = performance.now();
      const differences = await differencesBetween(leaf, root);
      lateness.see(differences, { beganMs, endedMs: performance.now() });
    }
    const { difference, atLeastMs, atMostMs } = lateness.latest;
    t.log(
      `round ${round}: ${writer.writes - writesBefore} writes, the longest difference lasted ${Math.round(atLeastMs)} to ${Math.round(atMostMs)} ms`,
    );
    t.true(atLeastMs <= lateMsMax, `round ${round}: ${difference}`);
    if (round === Math.ceil(rounds / 2)) await assumed();
  }

  async function assumed(): Promise<void> {
    const resting = writer.restFor(40_000);
    await until(async () => (await states(leaf)).every((state) => state === 'assumed'), 40_000);
    await resting;
    await sleep(1_000);
  }
});

async function states(cache: TreeCache): Promise<readonly string[]> {
  const { shards } = await cache.status();
  return shards.flatMap(({ slices }) => slices.map(({ syncedIn }) => syncedIn));
}
