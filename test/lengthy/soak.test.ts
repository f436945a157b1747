/**
 * Ageing: a real server under all the writes it accepts, on the real clock, with small bounds and otherwise those of an operator. Throughout,
 * history stays within a tenth of its bound, memory and disk stay flat, no more than a few turns of the event loop are long, and every watch is valid. Then nine of ten
 * objects go, and memory and disk come back.
 *
 * TEST_SOAK_MINUTES=n shares n minutes among the bounds; `npm run soak` takes ten, `npm run test:slow` one. TEST_SEED=n repeats the choices of the writers.
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
/** A virtual machine that stands still counts as work. What the server itself does in long turns comes again and again at this load. */
const longTurnsMax = 2;
const mebibyte = 1024 * 1024;
/** Beside the history: an object in ten, and as many tombstones as are kept. */
const stayMiB = 6;
/** What the server keeps at rest: an eighth of the database may be free, and always 8 MiB; its files are at most 24 MiB longer. */
const restMiB = 8 + 24;
const coresMin = 2;

/** A crowd that stayed away for a second has to be back within that, whatever else the machine does. */
const ageMaxMs = 10_000;
const bounds: readonly Readonly<{ title: string; flag: string; bound: HistoryBound }>[] = [
  { title: 'changes', flag: '--history-changes-max=20000', bound: { changesMax: 20_000 } },
  { title: 'age', flag: `--history-age-max=${ageMaxMs}ms`, bound: { ageMaxMs } },
  { title: 'bytes', flag: '--history-bytes-max=32MiB', bound: { bytesMax: 32 * mebibyte } },
];

/** History shrinks by age alone: it keeps its own bodies and those that its deletes replaced, in pages of which a quarter is unused. */
function historyMiB({ ageMaxMs, bytesMax, changesMax = 0 }: HistoryBound): number {
  return ageMaxMs === undefined ? (1.3 * ((bytesMax ?? changesMax * pushedBytes) + removedBytes)) / mebibyte : 0;
}

for (const { title, flag, bound } of bounds) {
  test(`a history that is bounded by ${title} stays within it at full speed, and so does everything else`, async (t) => {
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
    t.true(objectsAfter < 2_000, 'nine of ten are gone');
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
