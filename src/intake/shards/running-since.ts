/**
 * Since when this process has run without a pause. A process receives nothing while it, or its
 * machine, is stopped. When it continues, its timers are due before it has read what arrived
 * meanwhile (docs/guarantees.md, F7). So the silence of a peer counts only from the end of the
 * pause.
 *
 *   runs ──────── paused ──────── runs ────▶
 *   └ ms() before                 └ ms() after: a late tick, or an earlier call, noticed the pause
 */
import { every } from '../../domain/base/promises.js';
import type { Clock } from '../../domain/ports.js';

const tickMs = 1_000;
/** A busy event loop may delay a tick this much. That is no pause. */
const lateMs = 1_000;

export class RunningSince {
  readonly #clock: Clock;
  #sinceMs: number;
  #checkedMs: number;
  readonly #cancel: () => void;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.now();
    this.#checkedMs = this.#sinceMs;
    this.#cancel = every(clock, tickMs, () => void this.ms());
  }

  /** In milliseconds of the clock. */
  ms(): number {
    const nowMs = this.#clock.now();
    if (nowMs - this.#checkedMs > tickMs + lateMs) this.#sinceMs = nowMs;
    this.#checkedMs = nowMs;
    return this.#sinceMs;
  }

  close(): void {
    this.#cancel();
  }
}
