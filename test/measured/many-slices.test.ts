/**
 * Compares a sync of 20,000 slices of one object each with one of 2,000, because the speed of
 * machines differs. Finds work for each frame that grows with the number of slices.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { aSlice, SenderRig } from '../support/sender/a-sender.js';

const many = 20_000;
const few = many / 10;
/** Ten, and a margin for the noise of a shared machine. */
const ratioMax = 30;
const lookMs = 250;
/** Within this number of looks, the sender checks every slice. */
const looksMax = 8;

test.serial('a sync of 20,000 slices costs about ten times that of 2,000, and the sender sends nothing once all are synced', async (t) => {
  const small = await syncMs(t, few);
  const large = await syncMs(t, many);

  t.log(`${few} slices ${Math.round(small)} ms, ${many} slices ${Math.round(large)} ms`);
  t.true(large <= ratioMax * small);
});

async function syncMs(t: ExecutionContext, slices: number): Promise<number> {
  const rig = new SenderRig(t);
  const all = Array.from({ length: slices }, (_, i) => aSlice(`r${i}`));
  for (const slice of all) rig.source(slice, ['one']);
  const startedMs = performance.now();
  await rig.start();
  while (rig.cache.synced.size < slices) await rig.commit();
  const tookMs = performance.now() - startedMs;

  for (let looks = 0; looks < looksMax; looks += 1) await rig.advance(lookMs);
  rig.cache.received.length = 0;
  for (let looks = 0; looks < looksMax; looks += 1) await rig.advance(lookMs);
  t.deepEqual(rig.cache.received, []);
  t.deepEqual(rig.cache.violations, []);
  return tookMs;
}
