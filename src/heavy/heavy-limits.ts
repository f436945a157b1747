import type { HeavyLimits } from './heavy-thread.js';

/**
 * What is done in the serving thread takes some 10 ms for 32 KiB where somebody means harm; usual patches and updates are a tenth of that.
 * Of heavy work, 32 documents may wait, half of them one caller's. A patch of 2.9 MB of numbers takes 1.8 s and 220 MiB, one of empty
 * objects 2.5 s and 420 MiB; what nests by the million takes more than it gets.
 */
export const heavyLimits: HeavyLimits = {
  lightBytesMax: 32 * 1024,
  itemsMax: 32,
  bytesMax: 64 * 1024 * 1024,
  taskTimeMaxMs: 10_000,
  threadMemoryMaxMiB: 512,
  idleMs: 30_000,
};
