/**
 * How much memory does the server hold ten seconds after the run?
 *
 * It is the resident size of the process as Linux counts it: heaps, buffers and SQLite's caches.
 * Limits: 200 MB, and a sixth of what upstream's cache server holds after the same questions over
 * HTTP. The peak and Node's own figures have no limit. Memory outside Node's figures belongs to
 * SQLite, the committer's thread, and malloc.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { metric } from '../harness/metrics-text.js';
import { readProcessMemory } from '../harness/process-usage.js';
import { atMost, type Question } from '../harness/question.js';

const residentMbMax = 200;
const shareOfUpstreamMax = 1 / 6;
const megabyte = 1e6;

export const memory: Question = {
  name: 'memory',
  family: 'process',
  asks: 'How much memory does the server hold ten seconds after the run?',
  async ask({ server, options, http }) {
    await sleep(options.settleMs);
    const { residentBytes, peakBytes } = await readProcessMemory(server.pid);
    const otherPid = http?.targets.find(({ role }) => role === 'against')?.pid;
    const other = otherPid === undefined ? undefined : await readProcessMemory(otherPid);
    const { text } = await server.client().raw('GET', '/metrics');
    const parts = [
      { name: 'heap of the main thread', bytes: metric(text, 'nodejs_heap_size_total_bytes') },
      { name: 'buffers outside of it', bytes: metric(text, 'nodejs_external_memory_bytes') },
    ];
    return {
      figures: [
        {
          name: 'resident after the run',
          value: residentBytes / megabyte,
          unit: 'MB',
          better: 'less',
          limit: atMost(residentMbMax),
          ratioLimit: atMost(shareOfUpstreamMax),
          ...(other !== undefined && { against: other.residentBytes / megabyte }),
        },
        {
          name: 'peak during the run',
          value: peakBytes / megabyte,
          unit: 'MB',
          better: 'less',
          ...(other !== undefined && { against: other.peakBytes / megabyte }),
        },
        ...parts.filter(({ bytes }) => !Number.isNaN(bytes)).map(({ name, bytes }) => ({ name, value: bytes / megabyte, unit: 'MB' })),
      ],
      checks: [],
    };
  },
};
