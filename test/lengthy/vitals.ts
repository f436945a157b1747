/**
 * Samples of what a running server and the kernel report of it, and which bounds these samples
 * break.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeClient } from '../support/kube-client.js';
import { residentMiB } from '../support/process-figures.js';

export type Sample = Readonly<{
  askedMs: number;
  answeredMs: number;
  published: number;
  compacted: number;
  /** The longest turn in the metric's last whole window and the current one, in ms. */
  turnMs: number;
  memoryMiB: number;
  diskMiB: number;
}>;

/** Bounds of the history; a missing one is not checked. */
export type HistoryBound = Readonly<{ changesMax?: number; ageMaxMs?: number; bytesMax?: number }>;

const tolerated = 1.1;
/** A new server grows to this much memory, sooner on an idle machine. */
const youngMiB = 350;
const mebibyte = 1024 * 1024;

export async function sample(client: KubeClient, { pid, dataFolder }: Readonly<{ pid: number; dataFolder: string }>): Promise<Sample> {
  const askedMs = performance.now();
  const { text } = await client.raw('GET', '/metrics');
  const answeredMs = performance.now();
  const metric = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  return {
    askedMs,
    answeredMs,
    published: metric('strata_published_revision'),
    compacted: metric('strata_compacted_revision'),
    turnMs: metric('strata_event_loop_delay_max_seconds') * 1000,
    memoryMiB: await residentMiB(pid),
    diskMiB: await folderMiB(dataFolder),
  };
}

/**
 * Lists each bound that the history exceeds by more than a tenth, with its worst sample.
 * `meanBytes`: the mean size of a change.
 */
export function overBounds(
  samples: readonly Sample[],
  { changesMax = Infinity, ageMaxMs = Infinity, bytesMax = Infinity }: HistoryBound,
  meanBytes: number,
): readonly string[] {
  const last = samples.at(-1);
  const first = samples[0];
  if (first === undefined || last === undefined) return ['nothing was measured'];
  const worst = (what: string, share: (now: Sample, index: number) => number): readonly string[] => {
    const shares = samples.map(share);
    const most = Math.max(...shares);
    const at = samples[shares.indexOf(most)] ?? last;
    const percent = Math.round(most * 100);
    return most <= tolerated ? [] : [`${what}: ${percent} % of its bound after ${Math.round((at.answeredMs - first.askedMs) / 1000)} s`];
  };
  return [
    ...worst('changes of history', ({ published, compacted }) => (published - compacted) / changesMax),
    ...worst('bytes of history', ({ published, compacted }) => ((published - compacted) * meanBytes) / bytesMax),
    ...worst('age of history', (now, index) => {
      // A change that an earlier sample found published, and that is still in the history, is at
      // least as old as that sample.
      const oldest = samples.slice(0, index).find(({ published }) => published > now.compacted);
      return oldest === undefined ? 0 : (now.askedMs - oldest.answeredMs) / ageMaxMs;
    }),
  ];
}

/**
 * Lists which of memory and disk grow. It compares the last third of the samples with the one
 * before, and allows for garbage collection and the WAL.
 */
export function growth(samples: readonly Sample[]): readonly string[] {
  const third = Math.floor(samples.length / 3);
  const most = (of: readonly Sample[], what: 'memoryMiB' | 'diskMiB'): number => Math.max(...of.map((each) => each[what]));
  return (['memoryMiB', 'diskMiB'] as const).flatMap((what) => {
    const before = most(samples.slice(third, 2 * third), what);
    const after = most(samples.slice(2 * third), what);
    const least = what === 'memoryMiB' ? youngMiB : 0;
    return after <= Math.max(least, before * 1.15 + 32)
      ? []
      : [`${what} grows: ${Math.round(before)} in the second third, ${Math.round(after)} in the last`];
  });
}

async function folderMiB(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true });
  // A journal may disappear between the two calls.
  const sizes = await Promise.all(entries.map((entry) => stat(join(folder, entry)).catch(() => undefined)));
  return sizes.reduce((sum, found) => sum + (found?.isFile() === true ? found.size : 0), 0) / mebibyte;
}
