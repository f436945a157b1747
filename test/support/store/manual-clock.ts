/** A clock that a test moves by hand: nothing happens between two calls of `advance`. */
import type { Clock } from '../../../src/domain/ports.js';

type Task = { readonly dueMs: number; readonly run: () => void };

export class ManualClock implements Clock {
  #nowMs: number;
  #steppedMs = 0;
  readonly #tasks = new Set<Task>();

  constructor(nowMs = 1_000_000_000) {
    this.#nowMs = nowMs;
  }

  get pending(): number {
    return this.#tasks.size;
  }

  /** Milliseconds until the next task is due; Infinity when none waits. */
  get nextInMs(): number {
    return Math.min(...[...this.#tasks].map(({ dueMs }) => dueMs - this.#nowMs));
  }

  now(): number {
    return this.#nowMs;
  }

  /** Steps the wall clock, as when somebody sets the machine's time; no interval may change. */
  stepWall(ms: number): void {
    this.#steppedMs += ms;
  }

  wallMs(): number {
    return this.#nowMs + this.#steppedMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const task = { dueMs: this.#nowMs + delayMs, run };
    this.#tasks.add(task);
    return () => this.#tasks.delete(task);
  }

  /**
   * Lets time pass without running anything, as in a paused process. The next `advance` runs the
   * overdue tasks late.
   */
  skip(ms: number): void {
    this.#nowMs += ms;
  }

  /** Runs the tasks that become due, in order of time, each at its own time. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const due = [...this.#tasks].filter(({ dueMs }) => dueMs <= untilMs).toSorted((a, b) => a.dueMs - b.dueMs)[0];
      if (due === undefined) break;
      this.#tasks.delete(due);
      this.#nowMs = Math.max(this.#nowMs, due.dueMs);
      due.run();
    }
    this.#nowMs = untilMs;
  }
}
