/**
 * Compares the real store with the model: whatever happens in whatever order, both must agree. The
 * runs share one store, each in a resource of its own, because a new store costs more than a run.
 * TEST_SEED=n repeats a failure, TEST_RUNS=n goes on longer.
 */
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';
import { commands, type Real } from './commands.js';
import { ModelStore } from './model-store.js';

const runs = Number(process.env['TEST_RUNS'] ?? rounds(100));
const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const changesMax = 40;

test('the store agrees with the model: writes, snapshots, history, compaction and restarts in any order', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const engine = await SqliteEngine.start(t, {
    history: { historyChangesMax: changesMax, tombstonesMax: 10 },
    snapshot: { rowsMax: 3, bytesMax: 600 },
    queue: { batchMutationsMax: 4 },
  });
  const model = new ModelStore(engine.store.cacheId);
  let run = 0;

  await fc.assert(
    fc.asyncProperty(
      fc.integer().chain(() => commands(`r${run++}`)),
      async (steps) => {
        const real: Real = { engine, readings: [], changesMax, begin: model.published };
        try {
          await fc.asyncModelRun(() => ({ model, real }), steps);
        } finally {
          for (const { snapshot } of real.readings) snapshot.close();
        }
      },
    ),
    { numRuns: runs, seed, endOnFailure: false },
  );

  t.log(`${runs} runs, ${model.published} revisions, compacted ${engine.store.revisions.compacted}`);
  t.true(engine.store.revisions.compacted > 0);
});
