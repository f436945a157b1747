/**
 * How much memory does the server hold ten seconds after all this?
 *
 * As Linux counts it, for the whole process: heaps, buffers and SQLite's caches. At most 200 MB. The peak is shown and has no limit.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcessMemory } from './harness/process-memory.js';
import type { Question } from './harness/question.js';

const residentMbMax = 200;
const megabyte = 1e6;

export const memory: Question = {
  name: 'memory',
  asks: 'How much memory does the server hold ten seconds after the run?',
  async ask({ server, options }) {
    await sleep(options.settleMs);
    const { residentBytes, peakBytes } = await readProcessMemory(server.pid);
    return {
      figures: [
        { name: 'resident after the run', value: residentBytes / megabyte, unit: 'MB', limit: { kind: 'at most', value: residentMbMax } },
        { name: 'peak during the run', value: peakBytes / megabyte, unit: 'MB' },
      ],
      checks: [],
    };
  },
};
