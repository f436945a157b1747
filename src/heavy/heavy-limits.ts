import type { HeavyLimits } from './heavy-thread.js';

/**
 * A hostile document of 32 KiB takes some 10 ms in the serving thread; usual patches and updates
 * take a tenth of that. At most 32 heavy documents wait, half of them from one caller. Documents
 * with more than half a million values are refused, so that the thread's memory limit is only the
 * last resort.
 */
export const heavyLimits: HeavyLimits = {
  lightBytesMax: 32 * 1024,
  itemsMax: 32,
  bytesMax: 64 * 1024 * 1024,
  taskTimeMaxMs: 10_000,
  threadMemoryMaxMiB: 1536,
  idleMs: 30_000,
};
