/** The bounds of an engine's queue in tests: those of a server, except what lanes share. */
import type { QueueLimits } from '../../src/store/sqlite/mutation-queue.js';

const mebibyte = 1024 * 1024;

export const queueLimits: QueueLimits = {
  mutationsMax: 10_000,
  bytesMax: 64 * mebibyte,
  pushMutationsMax: 1_024,
  pushBytesMax: 16 * mebibyte,
  batchMutationsMax: 512,
  batchBytesMax: 8 * mebibyte,
  sharedDivisor: 1,
};
