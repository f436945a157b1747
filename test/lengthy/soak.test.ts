/**
 * Ageing: a real server on the real clock under all the writes it accepts, with small bounds of
 * history and otherwise default options. Throughout, history exceeds its bound by at most a tenth,
 * and memory and disk stay flat. Few turns of the event loop are long, and every watch is valid.
 * Then nine of ten objects are deleted, and the server gives memory and disk back.
 *
 * TEST_SOAK_MINUTES=n shares n minutes among the bounds; `npm run soak` takes ten, `npm run
 * test:slow` one. TEST_SEED=n repeats the choices of the writers.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../support/test.js';
import { meteredEnvironment, turnsMs } from '../support/longest-turn.js';
import { StrataProcess } from '../support/strata-process.js';
import { pushedBytes, removedBytes, soak } from './soak.js';
import { growth, overBounds, type HistoryBound, type Sample } from './vitals.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const soakMs = Number(process.env['TEST_SOAK_MINUTES'] ?? 1) * 60_000;
const turnMsMax = 50;
/**
 * A pause of the virtual machine counts as a long turn, so a few are tolerated. Long turns caused
 * by the server would recur all the time at this load.
 */
const longTurnsMax = 2;
const mebibyte = 1024 * 1024;
/** Disk beside the history: a tenth of the objects, and as many tombstones as the server keeps. */
const stayMiB = 6;
/**
 * Unused disk that the server keeps at rest. An eighth of the database may be free, and always 8
 * MiB. Its files are at most 24 MiB longer.
 */
const restMiB = 8 + 24;
const coresMin = 2;

/**
 * Within this time a crowd of watches that stayed away for a second must be back, also on a busy
 * machine.
 */
const ageMaxMs = 10_000;
const bounds: readonly Readonly<{ title: string; flag: string; bound: HistoryBound }>[] = [
  { title: 'changes', flag: '--history-changes-max=20000', bound: { changesMax: 20_000 } },
  { title: 'age', flag: `--history-age-max=${ageMaxMs}ms`, bound: { ageMaxMs } },
  { title: 'bytes', flag: '--history-bytes-max=32MiB', bound: { bytesMax: 32 * mebibyte } },
];

/**
 * Without writes, only a bound of age makes history shrink. Under the other bounds it keeps its own
 * bodies and those that its deletes replaced, in pages of which a quarter is unused.
 */
function historyMiB({ ageMaxMs, bytesMax, changesMax = 0 }: HistoryBound): number {
  return ageMaxMs === undefined ? (1.3 * ((bytesMax ?? changesMax * pushedBytes) + removedBytes)) / mebibyte : 0;
}

for (const { title, flag, bound } of bounds) {
  test(`at full speed, a history bounded by ${title} stays within its bound, and so do memory, disk and turns`, async (t) => {
    const forMs = soakMs / bounds.length;
    t.timeout(forMs + 180_000);
    if (availableParallelism() < coresMin) {
      t.log(`SKIPPED: the server and its clients need ${coresMin} cores`);
      t.pass();
      return;
    }
    t.log(`TEST_SEED=${seed}`);
    const folder = await mkdtemp(join(tmpdir(), 'strata-soak-'));
    t.teardown(() => rm(folder, { recursive: true }));
    await using server = await StrataProcess.start({
      flags: [flag, '--tombstones-max=20000', '--bookmark-interval=100ms'],
      environment: meteredEnvironment(folder),
    });
    const started = turnsMs(folder).length;
    const diskMiBMax = historyMiB(bound) + stayMiB + restMiB;
    const isGivenBack = ({ diskMiB }: Sample): boolean => diskMiB < diskMiBMax;
    const { load, after, afterMs, behindMost, violations, changes, events, objectsAfter } = await soak(server, {
      forMs,
      seed,
      isGivenBack,
      onEnd: (close) => t.teardown(close),
    });

    const most = (what: 'memoryMiB' | 'diskMiB' | 'turnMs'): number => Math.round(Math.max(...load.map((each) => each[what])));
    const longTurns = turnsMs(folder)
      .slice(started)
      .filter((turnMs) => turnMs > turnMsMax);
    t.log(
      `${changes} changes, ${Math.round((changes * 1000) / forMs)} a second, ${events} events; at most ${most('memoryMiB')} MiB of memory, ${most('diskMiB')} MiB of disk; ` +
        `the reader of everything at most ${behindMost} changes behind; strata_event_loop_delay_max ${most('turnMs')} ms, turns that worked over ${turnMsMax} ms: ${longTurns.length === 0 ? 'none' : longTurns.slice(0, 20).join(' ')}`,
    );
    t.log(
      `with ${objectsAfter} objects left, after ${(afterMs / 1000).toFixed(1)} s: ${Math.round(after.memoryMiB)} MiB of memory, ` +
        `${Math.round(after.diskMiB)} MiB of disk, of ${Math.round(diskMiBMax)} promised, ` +
        `${after.published - after.compacted} changes of history`,
    );
    t.true(objectsAfter < 2_000, 'nine of ten objects are gone');
    t.deepEqual(violations.slice(0, 10), [], 'every watch is valid');
    t.deepEqual(
      [
        ...overBounds(load, bound, pushedBytes),
        ...growth(load),
        ...(longTurns.length <= longTurnsMax ? [] : [`${longTurns.length} turns worked over ${turnMsMax} ms`]),
        ...(isGivenBack(after) ? [] : [`${Math.round(after.diskMiB)} MiB of disk are not given back`]),
        ...(after.memoryMiB <= most('memoryMiB') * 1.25 + 64 ? [] : [`${Math.round(after.memoryMiB)} MiB of memory are not given back`]),
      ],
      [],
    );
  });
}
