/**
 * Time that passes only when there is something to do, the same way in every run. Hours of a tree
 * of caches take minutes.
 *
 * V1 Tasks run in the order of due time; tasks of one time run in the order of being added.
 * V2 After each task, everything that promises have made ready runs before the next task, as Node
 *    does after each timer.
 * V3 Time stands still meanwhile: code takes none. What is to take time uses `after`.
 *
 * Node empties the queue of promises after each immediate, so each task runs in an immediate of its
 * own. Immediates are requested many at a time: a single one costs a round of the event loop, 1.1
 * microseconds; in a burst of 64 each costs 0.2.
 *
 * Code that runs here may wait for promises and this clock only: no timer, no thread, no disk. At
 * most instantTasksMax tasks may run at one time; more means a loop that never waits, and throws.
 */
import { setImmediate } from 'node:timers';
import { deferred } from '../../src/domain/base/promises.js';
import type { Clock } from '../../src/domain/ports.js';
import { TaskHeap, type Task } from './task-heap.js';

/** 2026-11-21; a whole number, as clocks give. */
const beginsMs = 1_795_219_200_000;
const burstMax = 64;

export class VirtualTime implements Clock {
  readonly #later = new TaskHeap();
  /**
   * Tasks of the present time. A task in the heap that is due now was added before any of these.
   */
  #soon: (() => void)[] = [];
  #soonAt = 0;
  #nowMs = beginsMs;
  #sequence = 0;
  #tasksRun = 0;
  #isRunning = false;
  readonly #instantTasksMax: number;
  #instantTasks = 0;

  constructor({ instantTasksMax = 10_000_000 }: Readonly<{ instantTasksMax?: number }> = {}) {
    this.#instantTasksMax = instantTasksMax;
  }

  now(): number {
    return Math.floor(this.#nowMs);
  }

  wallMs(): number {
    return this.now();
  }

  /** Time since the beginning, with its fraction, to measure durations. */
  get elapsedMs(): number {
    return this.#nowMs - beginsMs;
  }

  /** The number of waiting tasks. */
  get pending(): number {
    return this.#later.size + this.#soon.length - this.#soonAt;
  }

  /** The number of tasks that have run. */
  get tasksRun(): number {
    return this.#tasksRun;
  }

  after(delayMs: number, run: () => void): () => void {
    const dueMs = this.#nowMs + Math.max(0, delayMs);
    if (Number.isNaN(dueMs)) throw new Error(`a delay of ${delayMs} ms`);
    if (dueMs === this.#nowMs) return this.#cancellableSoon(run);
    this.#sequence += 1;
    const task: Task = { dueMs, sequence: this.#sequence, run };
    this.#later.add(task);
    return () => this.#later.cancel(task);
  }

  /** Runs the function after everything that is due now, as setImmediate does. */
  soon(run: () => void): void {
    this.#soon.push(run);
  }

  /** Resolves after everything that is due now. */
  turn(): Promise<void> {
    const { promise, resolve } = deferred<void>();
    this.soon(resolve);
    return promise;
  }

  /** Lets so much time pass. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await this.#run(untilMs, () => false);
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /**
   * Lets time pass until no task is left, however far away; throws if that takes longer than
   * `maxMs`.
   */
  async settle(maxMs: number): Promise<void> {
    await this.#run(this.#nowMs + maxMs, () => false);
    if (this.pending > 0) throw new Error(`${this.pending} tasks are left after ${maxMs} ms`);
  }

  /**
   * Lets time pass until the condition holds, checked before each task; returns whether it does
   * within `maxMs`.
   */
  async until(condition: () => boolean, maxMs: number): Promise<boolean> {
    const untilMs = this.#nowMs + maxMs;
    await this.#run(untilMs, condition);
    if (condition()) return true;
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    return false;
  }

  /**
   * Lets time pass until the promise settles, and returns its value; throws if it does not settle
   * within `maxMs`.
   */
  async awaited<T>(promise: Promise<T>, maxMs: number): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    // Without this handler the failure would count as unhandled until the caller awaits `settled`.
    settled.catch(() => undefined);
    if (!(await this.until(() => isSettled, maxMs))) throw new Error(`not settled after ${maxMs} ms`);
    return settled;
  }

  #cancellableSoon(run: () => void): () => void {
    let isCancelled = false;
    this.soon(() => {
      if (!isCancelled) run();
    });
    return () => {
      isCancelled = true;
    };
  }

  async #run(untilMs: number, isEnough: () => boolean): Promise<void> {
    if (this.#isRunning) throw new Error('time runs already');
    this.#isRunning = true;
    const { promise, resolve, reject } = deferred<void>();
    let isOver = false;
    let burst = 1;
    let left = 0;
    const step = (): void => {
      if (isOver) return;
      try {
        isOver = isEnough() || !this.#runNext(untilMs);
        if (isOver) resolve();
      } catch (error) {
        isOver = true;
        reject(error);
      }
      left -= 1;
      if (left === 0) begin();
    };
    const begin = (): void => {
      if (isOver) return;
      burst = Math.min(burst * 2, burstMax);
      left = burst;
      for (let count = 0; count < burst; count += 1) setImmediate(step);
    };
    begin();
    try {
      await promise;
    } finally {
      this.#isRunning = false;
    }
  }

  /** Runs the next task that is due by then; returns whether there was one. */
  #runNext(untilMs: number): boolean {
    const next = this.#later.peek();
    if (next !== undefined && next.dueMs <= this.#nowMs) return this.#runLater();
    const soon = this.#soon[this.#soonAt];
    if (soon !== undefined) {
      this.#soonAt += 1;
      if (this.#soonAt === this.#soon.length) {
        this.#soon = [];
        this.#soonAt = 0;
      }
      this.#count();
      soon();
      return true;
    }
    if (next === undefined || next.dueMs > untilMs) return false;
    this.#nowMs = next.dueMs;
    this.#instantTasks = 0;
    return this.#runLater();
  }

  #runLater(): boolean {
    const task = this.#later.take();
    const run = task?.run;
    if (task === undefined || run === undefined) return false;
    // A running task can no longer be cancelled.
    task.run = undefined;
    this.#count();
    run();
    return true;
  }

  #count(): void {
    this.#tasksRun += 1;
    this.#instantTasks += 1;
    if (this.#instantTasks > this.#instantTasksMax)
      throw new Error(`more than ${this.#instantTasksMax} tasks at one time: a loop never waits`);
  }
}
