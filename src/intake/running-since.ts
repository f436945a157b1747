/**
 * Since when this process has run without a pause. A process that is stopped, or whose machine is, receives nothing. When it goes on, its intervals
 * are over before it has read what came meanwhile (F7). So whoever was silent during a pause counts as away from its end on.
 *
 *   runs ──────── paused ──────── runs ────▶
 *   └ ms() before                 └ ms() after: noticed by a tick that is late, or by an earlier call
 */
import type { Clock } from '../domain/ports.js';

const tickMs = 1_000;
/** A busy event loop is no pause. */
const lateMs = 1_000;

export class RunningSince {
  readonly #clock: Clock;
  #sinceMs: number;
  #lookedMs: number;
  #cancel: () => void;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.now();
    this.#lookedMs = this.#sinceMs;
    this.#cancel = this.#tickLater();
  }

  /** In milliseconds of the clock. */
  ms(): number {
    const nowMs = this.#clock.now();
    if (nowMs - this.#lookedMs > tickMs + lateMs) this.#sinceMs = nowMs;
    this.#lookedMs = nowMs;
    return this.#sinceMs;
  }

  close(): void {
    this.#cancel();
  }

  #tickLater(): () => void {
    return this.#clock.after(tickMs, () => {
      this.ms();
      this.#cancel = this.#tickLater();
    });
  }
}
