/**
 * What a worker of AVA takes, as one line of JSON in the file that TEST_TIMES names (`file-times.ts`). AVA requires this first, in a worker that is a process of its
 * own, so the figures of the process are those of one file of tests.
 */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { registerCompletionHandler } from 'ava';
import { findProjectRoot } from '../house/sources.js';
import { processorSeconds } from './process-figures.js';

/** Processor time in seconds, of all threads of this process; of its children, once they have ended; and what has passed. */
export type FileTimes = Readonly<{ file: string; startS: number; ownS: number; childrenS: number; wallS: number; servers: number }>;

const began = performance.now();
const startS = processorSeconds(process.pid).own;

// Where no test is chosen, nobody closes what a file has opened as it was loaded.
registerCompletionHandler(() => process.exit());

process.on('exit', () => {
  const { own, children } = processorSeconds(process.pid);
  const times: FileTimes = {
    file: relative(findProjectRoot(), fileURLToPath(test.meta.file)),
    startS,
    ownS: own,
    childrenS: children,
    wallS: (performance.now() - began) / 1000,
    servers: performance.getEntriesByName('server started').length,
  };
  appendFileSync(process.env['TEST_TIMES']!, `${JSON.stringify(times)}\n`);
});
