import type { Clock } from './ports.js';

/**
 * Resolves after `delayMs`, or as soon as `signal` is aborted; leaves neither a timer nor a
 * listener. A pause of 0 also uses the clock, so that a loop always yields to the event loop, even
 * if its jitter is 0.
 */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener('abort', end);
  });
}
