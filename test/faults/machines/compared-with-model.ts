/**
 * Compares real servers with their model, over both protocols. Finds an answer or a watch that the
 * model does not predict, whatever happens in whatever order. Each run has servers and a store of
 * its own, so a failure shrinks by leaving commands out.
 *
 * TEST_SEED=n repeats the choices of a failure, TEST_RUNS=n goes on longer. TEST_WITHOUT and
 * TEST_TRACE: see model-commands.ts.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import type { StrataProcess } from '../../support/strata-process.js';
import { canFakeClock, FakedClock } from './faked-clock.js';
import { commands, type Real } from './model-commands.js';
import { ModelledServer, type ModelledStore } from './modelled-server.js';
import type { Write } from './role-model.js';

/** Flags and environment to start the servers with. */
export type ToOpen = Readonly<{ flags: readonly string[]; environment: Readonly<Record<string, string>> }>;

/** Disposing of it ends the servers. */
export type Opened = AsyncDisposable & Readonly<{ servers: readonly StrataProcess[]; store: ModelledStore }>;

export type Installation = Readonly<{
  /** For the titles of the tests. */
  what: string;
  /** How many runs of random commands. */
  runs: number;
  /** Flags that not every store takes. */
  flags: readonly string[];
  /** Undefined if this kind cannot be tested here; `open` has then logged why. */
  open: (t: ExecutionContext, toOpen: ToOpen) => Promise<Opened | undefined>;
}>;

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const changesMax = 50;
const shrinkMsMax = 240_000;

const flags = [
  '--queue-mutations-max=40',
  '--commit-mutations-max=16',
  '--open-watches-max=50',
  '--watcher-queue-bytes-max=64KiB',
  '--list-chunk-bytes-max=4KiB',
];

/** Failures that the model once found. */
const found: Readonly<Record<string, (real: Real) => Promise<unknown>>> = {
  'a collection of more than history remembers is deleted': async ({ server }) => {
    for (let i = 0; i < 2 * changesMax; i += 20) await server.write(Array.from({ length: 20 }, (_, j) => aCreate(server, `a${i + j}`)));
    await server.clear({ shard: 'amber', cluster: 'acme', namespace: 'x' });
  },
  'an older copy of the store is put back': async ({ server }) => {
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

export function compareWithModel({ what, open, ...installation }: Installation): void {
  const runs = Number(process.env['TEST_RUNS'] ?? installation.runs);

  async function run(
    t: ExecutionContext,
    { http2, bookmarkInterval }: Readonly<{ http2: boolean; bookmarkInterval: string }>,
    happen: (real: Real) => Promise<unknown>,
  ): Promise<number | undefined> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-model-'));
    try {
      const clock = canFakeClock ? new FakedClock(join(folder, 'clock')) : undefined;
      await clock?.step(0);
      const given = [...flags, ...installation.flags, `--bookmark-interval=${bookmarkInterval}`];
      await using opened = await open(t, { flags: given, environment: clock?.environment ?? {} });
      if (opened === undefined) return undefined;
      const server = await ModelledServer.begin({ servers: opened.servers, store: opened.store, changesMax, http2 });
      try {
        await happen({ server, clock });
        await server.finish();
        return server.model.truth.length;
      } finally {
        await server.close();
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  test(`${what} does what the model predicts, through compactions, restarts, kills, restores and clocks that step`, async (t) => {
    t.timeout(shrinkMsMax + runs * 30_000);
    t.log(`TEST_SEED=${seed}`);
    if (!canFakeClock) t.log('SKIPPED: clock steps, because libfaketime is not installed');
    let changes = 0;
    let isSkipped = false;
    await fc.assert(
      fc.asyncProperty(commands, fc.boolean(), fc.constantFrom('100ms', '60s'), async (steps, http2, bookmarkInterval) => {
        const changed = await run(t, { http2, bookmarkInterval }, (real) => fc.asyncModelRun(() => ({ model: {}, real }), steps));
        if (changed === undefined) isSkipped = true;
        else changes += changed;
      }),
      { numRuns: runs, seed, interruptAfterTimeLimit: shrinkMsMax, includeErrorInReport: true },
    );
    t.log(`${runs} runs, ${changes} changes`);
    t.true(isSkipped || changes > 0);
  });

  for (const [title, happen] of Object.entries(found))
    test(`${what} does what the model predicts when ${title}`, async (t) => {
      const changed = await run(t, { http2: true, bookmarkInterval: '60s' }, happen);
      t.true(changed === undefined || changed > 0);
    });
}

function aCreate(server: ModelledServer, name: string): Write {
  const turn = server.turn();
  return {
    kind: 'create',
    place: { shard: 'amber', cluster: 'acme', namespace: 'x', name },
    content: { turn, tier: '', rules: { turn, count: 0 } },
  };
}
