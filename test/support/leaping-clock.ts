/**
 * The real clock, which a test can also advance by leaps. A wait of minutes in a server then costs
 * the test some turns of the event loop. However slow the machine is, this clock hardly advances
 * unless the test makes it.
 *
 *   now ──▶ real time ──▶ leap(1 s) ══▶ tasks due by then, in order ──▶ real time
 */
import { systemClock } from '../../src/clock.js';
import type { Clock } from '../../src/domain/ports.js';

type Waiting = { readonly dueMs: number; readonly task: () => void; cancel: () => void };

export class LeapingClock implements Clock {
  readonly #waiting = new Set<Waiting>();
  #leaptMs = 0;

  now(): number {
    return systemClock.now() + this.#leaptMs;
  }

  /** A leap does not change the time of day. */
  wallMs(): number {
    return systemClock.wallMs();
  }

  after(delayMs: number, task: () => void): () => void {
    const waiting: Waiting = { dueMs: this.now() + delayMs, task, cancel: () => {} };
    this.#waiting.add(waiting);
    this.#arm(waiting);
    return () => {
      waiting.cancel();
      this.#waiting.delete(waiting);
    };
  }

  leap(ms: number): void {
    this.#leaptMs += ms;
    const nowMs = this.now();
    for (const waiting of [...this.#waiting].toSorted((one, other) => one.dueMs - other.dueMs)) {
      // A task that ran earlier in this leap may have cancelled it.
      if (!this.#waiting.has(waiting)) continue;
      waiting.cancel();
      if (waiting.dueMs <= nowMs) this.#run(waiting);
      else this.#arm(waiting);
    }
  }

  #arm(waiting: Waiting): void {
    waiting.cancel = systemClock.after(Math.max(0, waiting.dueMs - this.now()), () => this.#run(waiting));
  }

  #run(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    waiting.task();
  }
}
