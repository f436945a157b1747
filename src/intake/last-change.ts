import type { SliceState } from '../domain/push.js';

/**
 * When any of these slices changed last, in milliseconds of the clock; 0 if none ever did. A time
 * in the future comes from an earlier process whose clock was ahead. It is ignored, because
 * RunningSince knows better since when this process runs. A caller that removes something because
 * of its age should wait on such a time instead, as shard-removal.ts does.
 */
export function lastChangeMs(slices: Iterable<Pick<SliceState, 'changedMs'>>, nowMs: number): number {
  let lastMs = 0;
  for (const { changedMs } of slices) if (changedMs <= nowMs && changedMs > lastMs) lastMs = changedMs;
  return lastMs;
}
