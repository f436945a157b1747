/**
 * What each file of tests takes of the processor in `npm test`, where many files share a worker. One that takes more than its bound fails the run, because the three
 * minutes are for all of them: its great numbers belong into a `largeTest`, or the file into a slow lane. Linux counts the time, of the thread alone:
 * `npm run test:times` has that of children and of V8's threads too. On other systems nothing has a bound.
 */
import { readFileSync, writeSync } from 'node:fs';
import { registerCompletionHandler, type ImplementationFn } from 'ava';

/** Where all of what is much is done (`sizes.ts`), three times as many. */
const secondsMax = Number(process.env['TEST_FILE_SECONDS'] ?? (process.env['TEST_SIZES'] === 'all' ? 30 : 10));
const stderr = 2;
const spentMs = new Map<string, number>();

registerCompletionHandler(() => {
  const dear = [...spentMs].filter(([, ms]) => ms > secondsMax * 1_000);
  for (const [file, ms] of dear)
    writeSync(stderr, `\n${file} took ${(ms / 1_000).toFixed(1)} s of the processor: more than ${secondsMax} s\n`);
  if (dear.length > 0) process.exit(1);
});

/** The test, whose time counts for the file that its entry names (`entry-files.ts`). In a worker of its own a file has no bound. */
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

/** How long this thread has run, by its first figure in /proc, whose unit is nanoseconds. */
function threadMs(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
}
