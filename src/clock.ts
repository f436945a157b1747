/**
 * The real time behind `Clock`. Modules receive it as a parameter; only main.ts and client.ts import
 * it.
 */
import type { Clock } from './domain/ports.js';

/**
 * Node keeps timer delays in 31 bits. A longer delay, such as the 30 days of a tombstone, would
 * fire at once, so it is split into several timers.
 */
const timerDelayMaxMs = 2 ** 31 - 1;

/**
 * The wall clock at the start of the process. Later steps of the wall clock do not change `now`.
 */
const startedMs = Math.floor(performance.timeOrigin);

export const systemClock: Clock = Object.freeze({
  now: () => startedMs + Math.floor(performance.now()),
  wallMs: () => Date.now(),
  after(delayMs: number, task: () => void): () => void {
    let timer = setTimeout(step, Math.min(delayMs, timerDelayMaxMs), delayMs);
    function step(waitMs: number): void {
      if (waitMs <= timerDelayMaxMs) return task();
      const restMs = waitMs - timerDelayMaxMs;
      timer = setTimeout(step, Math.min(restMs, timerDelayMaxMs), restMs);
    }
    return () => clearTimeout(timer);
  },
});
