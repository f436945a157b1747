/**
 * A real server against the model of it, over both protocols: whatever happens in whatever order, every answer and every watch is what the model
 * says. Each run has a server of its own, so a failure is made smaller by leaving commands out.
 *
 * TEST_SEED=n repeats the choices of a failure, TEST_RUNS=n goes on longer. TEST_WITHOUT and TEST_TRACE: model-commands.ts.
 */
import { rm } from 'node:fs/promises';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { StrataProcess } from '../support/strata-process.js';
import { TestAuthority } from '../support/test-authority.js';
import { canFakeClock, FakedClock } from './faked-clock.js';
import { commands } from './model-commands.js';
import { ModelledServer } from './modelled-server.js';

const runs = Number(process.env['TEST_RUNS'] ?? 12);
const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const changesMax = 50;
const shrinkMsMax = 240_000;

const flags = [
  `--history-changes-max=${changesMax}`,
  '--tombstones-max=1000',
  '--queue-mutations-max=40',
  '--commit-mutations-max=16',
  '--open-watches-max=50',
  '--watcher-queue-bytes-max=64KiB',
  '--list-chunk-bytes-max=4KiB',
  '--recent-bytes-max=64KiB',
];

test('a server does what the model says, through compactions, restarts, kills, restores and clocks that step', async (t) => {
  t.timeout(shrinkMsMax + runs * 30_000);
  t.log(`TEST_SEED=${seed}`);
  if (!canFakeClock) t.log('SKIPPED: clock steps, because libfaketime is not installed');
  const folder = await mkdtemp(join(tmpdir(), 'strata-model-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const authority = await TestAuthority.create(folder);
  let changes = 0;

  await fc.assert(
    fc.asyncProperty(commands, fc.boolean(), fc.constantFrom('100ms', '60s'), async (steps, http2, bookmarkInterval) => {
      const clock = canFakeClock ? new FakedClock(join(folder, 'clock')) : undefined;
      await clock?.step(0);
      const environment = clock?.environment ?? {};
      await using process = await StrataProcess.start({
        authority,
        environment,
        flags: [...flags, `--bookmark-interval=${bookmarkInterval}`],
      });
      const server = await ModelledServer.begin(process, { changesMax, http2 });
      try {
        await fc.asyncModelRun(() => ({ model: {}, real: { server, clock } }), steps);
        await server.finish();
        changes += server.model.truth.length;
      } finally {
        await server.close();
      }
    }),
    { numRuns: runs, seed, skipAllAfterTimeLimit: shrinkMsMax, includeErrorInReport: true },
  );

  t.log(`${runs} runs, ${changes} changes`);
  t.true(changes > 0);
});
