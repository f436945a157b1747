/**
 * The real clock, which a test moves on by leaps: a server waits for minutes, and the test for as many turns of the event loop. However slow the machine
 * is, hardly any time of this clock passes that the test has not asked for.
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

  /** The time of day does not leap. */
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
      // One that ran before may have cancelled it.
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
