/**
 * A real server compared with its model, over both protocols: whatever happens in whatever order, every answer and every watch is what the model
 * predicts. Each run has a server of its own, so a failure shrinks by leaving commands out.
 *
 * TEST_SEED=n repeats the choices of a failure, TEST_RUNS=n goes on longer. TEST_WITHOUT and TEST_TRACE: model-commands.ts.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { StrataProcess } from '../support/strata-process.js';
import { TestAuthority } from '../support/test-authority.js';
import { canFakeClock, FakedClock } from './faked-clock.js';
import { commands, type Real } from './model-commands.js';
import { ModelledServer } from './modelled-server.js';
import type { Write } from './role-model.js';

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

test('a server does what the model predicts, through compactions, restarts, kills, restores and clocks that step', async (t) => {
  t.timeout(shrinkMsMax + runs * 30_000);
  t.log(`TEST_SEED=${seed}`);
  if (!canFakeClock) t.log('SKIPPED: clock steps, because libfaketime is not installed');
  const folder = await mkdtemp(join(tmpdir(), 'strata-model-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const authority = await TestAuthority.create(folder);
  let changes = 0;

  await fc.assert(
    fc.asyncProperty(commands, fc.boolean(), fc.constantFrom('100ms', '60s'), async (steps, http2, bookmarkInterval) => {
      await modelled({ folder, authority, http2, bookmarkInterval }, async (real) => {
        await fc.asyncModelRun(() => ({ model: {}, real }), steps);
        await real.server.finish();
        changes += real.server.model.truth.length;
      });
    }),
    { numRuns: runs, seed, interruptAfterTimeLimit: shrinkMsMax, includeErrorInReport: true },
  );

  t.log(`${runs} runs, ${changes} changes`);
  t.true(changes > 0);
});

/** Failures that the model once found. */
const found: Readonly<Record<string, (real: Real) => Promise<unknown>>> = {
  'a collection of more than history remembers is deleted': async ({ server }) => {
    for (let i = 0; i < 2 * changesMax; i += 20) await server.write(Array.from({ length: 20 }, (_, j) => aCreate(server, `a${i + j}`)));
    await server.clear({ shard: 'amber', cluster: 'acme' });
  },
  'an older copy of the folder is put back': async ({ server }) => {
    await server.copy('SIGTERM');
    for (const name of ['a', 'b', 'c']) await server.write([aCreate(server, name)]);
    await server.restore(0, 'SIGTERM');
    await server.write([aCreate(server, 'd')]);
  },
  'the clock steps back by an hour': async ({ server, clock }) => {
    await server.write([aCreate(server, 'a')]);
    await clock?.step(-3_600_000);
    for (const name of ['b', 'c', 'd']) await server.write([aCreate(server, name)]);
  },
};

for (const [title, happen] of Object.entries(found)) {
  test(`a server does what the model predicts when ${title}`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'strata-model-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const authority = await TestAuthority.create(folder);
    await modelled({ folder, authority, http2: true, bookmarkInterval: '60s' }, async (real) => {
      await happen(real);
      await real.server.finish();
      t.true(real.server.model.truth.length > 0);
    });
  });
}

async function modelled(
  {
    folder,
    authority,
    http2,
    bookmarkInterval,
  }: Readonly<{ folder: string; authority: TestAuthority; http2: boolean; bookmarkInterval: string }>,
  run: (real: Real) => Promise<void>,
): Promise<void> {
  const clock = canFakeClock ? new FakedClock(join(folder, 'clock')) : undefined;
  await clock?.step(0);
  const environment = clock?.environment ?? {};
  await using process = await StrataProcess.start({ authority, environment, flags: [...flags, `--bookmark-interval=${bookmarkInterval}`] });
  const server = await ModelledServer.begin(process, { changesMax, http2 });
  try {
    await run({ server, clock });
  } finally {
    await server.close();
  }
}

function aCreate(server: ModelledServer, name: string): Write {
  const turn = server.turn();
  return {
    kind: 'create',
    place: { shard: 'amber', cluster: 'acme', namespace: 'x', name },
    content: { turn, tier: '', rules: { turn, count: 0 } },
  };
}
