import type { SliceState } from '../domain/push.js';

/**
 * When one of these changed last, in milliseconds of the clock; 0 when none ever did. A time to come is from a process whose clock was ahead of
 * this one's. That was before this process, so it is left out: RunningSince knows better since when this one runs. Whoever removes something because
 * of this time should rather wait.
 */
export function lastChangeMs(slices: Iterable<Pick<SliceState, 'changedMs'>>, nowMs: number): number {
  let lastMs = 0;
  for (const { changedMs } of slices) if (changedMs <= nowMs && changedMs > lastMs) lastMs = changedMs;
  return lastMs;
}
