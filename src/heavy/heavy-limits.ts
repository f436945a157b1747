import type { HeavyLimits } from './heavy-thread.js';

/**
 * Work in the serving thread takes some 10 ms for 32 KiB where somebody means harm; usual patches and updates take a tenth of that.
 * Of heavy work, 32 documents may wait, half of them one caller's. Documents with more than half a million values are refused, so that
 * the memory limit of the thread is only the last resort.
 */
export const heavyLimits: HeavyLimits = {
  lightBytesMax: 32 * 1024,
  itemsMax: 32,
  bytesMax: 64 * 1024 * 1024,
  taskTimeMaxMs: 10_000,
  threadMemoryMaxMiB: 1536,
  idleMs: 30_000,
};
