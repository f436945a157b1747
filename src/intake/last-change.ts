import type { SliceState } from '../domain/push.js';

/**
 * When one of these changed last, in milliseconds of the clock; 0 when none ever did. What lies ahead is of a process whose clock was ahead of
 * this one's: it was before this process, and since when that runs is known better elsewhere (RunningSince). Whoever removes something on the strength
 * of it had better wait instead.
 */
export function lastChangeMs(slices: Iterable<Pick<SliceState, 'changedMs'>>, nowMs: number): number {
  let lastMs = 0;
  for (const { changedMs } of slices) if (changedMs <= nowMs && changedMs > lastMs) lastMs = changedMs;
  return lastMs;
}
