/**
 * Writes what a worker of AVA used, as one line of JSON, to the file that TEST_TIMES names
 * (`file-times.ts`). AVA requires this module first. Each worker is a process with one file of
 * tests, so the figures of the process are those of the file.
 */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { registerCompletionHandler } from 'ava';
import { findProjectRoot } from '../house/sources.js';
import { processorSeconds } from './process-figures.js';

/**
 * Times in seconds: `ownS` is the processor time of all threads of this process, `childrenS` that
 * of ended children, `wallS` the time passed.
 */
export type FileTimes = Readonly<{ file: string; startS: number; ownS: number; childrenS: number; wallS: number; servers: number }>;

const began = performance.now();
const startS = processorSeconds(process.pid).own;

// If no test of a file is chosen, nothing closes what the file opened when AVA loaded it.
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
