/**
 * How much memory does the server hold ten seconds after all this?
 *
 * As Linux counts it, for the whole process: heaps, buffers and SQLite's caches. At most 200 MB. The peak is shown without a
 * limit, and so are Node's own figures: the rest is SQLite, the committer's thread, and malloc.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { metric } from '../harness/metrics-text.js';
import { readProcessMemory } from '../harness/process-usage.js';
import type { Question } from '../harness/question.js';

const residentMbMax = 200;
const megabyte = 1e6;

export const memory: Question = {
  name: 'memory',
  family: 'process',
  asks: 'How much memory does the server hold ten seconds after the run?',
  async ask({ server, options }) {
    await sleep(options.settleMs);
    const { residentBytes, peakBytes } = await readProcessMemory(server.pid);
    const { text } = await server.client().raw('GET', '/metrics');
    const parts = [
      { name: 'heap of the main thread', bytes: metric(text, 'nodejs_heap_size_total_bytes') },
      { name: 'buffers outside of it', bytes: metric(text, 'nodejs_external_memory_bytes') },
    ];
    return {
      figures: [
        { name: 'resident after the run', value: residentBytes / megabyte, unit: 'MB', limit: { kind: 'at most', value: residentMbMax } },
        { name: 'peak during the run', value: peakBytes / megabyte, unit: 'MB' },
        ...parts.filter(({ bytes }) => !Number.isNaN(bytes)).map(({ name, bytes }) => ({ name, value: bytes / megabyte, unit: 'MB' })),
      ],
      checks: [],
    };
  },
};
