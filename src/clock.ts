/** The real time behind `Clock`. Rooms get it as a parameter; only main.ts, commands and client.ts name it. */
import type { Clock } from './domain/ports.js';

/** Node keeps delays in 31 bits: a longer one, such as the 30 days of a tombstone, would fire at once. Longer waits are cut up. */
const timerDelayMaxMs = 2 ** 31 - 1;

/** When `performance` began to count. Later steps of the wall clock do not count. */
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
