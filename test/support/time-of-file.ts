/**
 * Measures the processor time of each file of tests in `npm test`, where many files share a worker.
 * A file over its bound is named, because all files together have three minutes: its great numbers
 * belong into a `largeTest`, or the file into a slow lane. A file over twice its bound fails the
 * run: beside other programs, the same work counts as up to twice as much.
 * Linux measures the time, of this thread alone; `npm run test:times` also counts children and V8's
 * threads. On other systems nothing has a bound.
 */
import { readFileSync, writeSync } from 'node:fs';
import { registerCompletionHandler, type ImplementationFn } from 'ava';

/** Three times as long where tests do all of their large work (`sizes.ts`). */
const secondsMax = Number(process.env['TEST_FILE_SECONDS'] ?? (process.env['TEST_SIZES'] === 'all' ? 30 : 10));
const stderr = 2;
const spentMs = new Map<string, number>();

registerCompletionHandler(() => {
  const dear = [...spentMs].filter(([, ms]) => ms > secondsMax * 1_000);
  for (const [file, ms] of dear)
    writeSync(stderr, `\n${file} took ${(ms / 1_000).toFixed(1)} s of the processor: more than ${secondsMax} s\n`);
  if (dear.some(([, ms]) => ms > 2 * secondsMax * 1_000)) process.exit(1);
});

/**
 * Returns the test such that its time counts for the file that its entry names (`entry-files.ts`).
 * A file in a worker of its own has no bound.
 */
export function timed(test: ImplementationFn<unknown[]>): ImplementationFn<unknown[]> {
  const file = process.env['TEST_FILE'];
  if (file === undefined || process.platform !== 'linux') return test;
  return async (t, ...args) => {
    const began = threadMs();
    try {
      return await test(t, ...args);
    } finally {
      spentMs.set(file, (spentMs.get(file) ?? 0) + threadMs() - began);
    }
  };
}

/** How long this thread has run: the first number of its /proc file, in nanoseconds. */
function threadMs(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
}
