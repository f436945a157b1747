/**
 * Time that passes only as fast as there is something to do, the same way in every run. Hours of a tree of caches take minutes.
 *
 * V1 Tasks run in the order of the time they fall due, those of one time in the order in which they were asked for.
 * V2 Behind each task everything that promises have made ready is run, before the next task: as Node does behind each timer.
 * V3 Time stands still meanwhile: code takes none. What is to take time says so, through `after`.
 *
 * The promises' own queue is emptied by Node behind each immediate, so a task is run in one of its own. They are asked for many at a
 * time: an immediate alone costs a round of the event loop, 1.1 microseconds; of a burst of 64 each costs 0.2.
 *
 * What runs here may wait for promises and this clock, and nothing else: no timer, no thread, no disk.
 * Bounds: of tasks at one time at most instantTasksMax; more is a loop that never waits, and is thrown.
 */
import { setImmediate } from 'node:timers';
import { deferred } from '../../src/domain/deferred.js';
import type { Clock } from '../../src/domain/ports.js';
import { TaskHeap, type Task } from './task-heap.js';

/** 2026-11-21; a whole number, as clocks have. */
const beginsMs = 1_795_219_200_000;
const burstMax = 64;

export class VirtualTime implements Clock {
  readonly #later = new TaskHeap();
  /** Of the present time. Whatever falls due now and lies in the heap was asked for before any of these. */
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

  /** Since the beginning, with its fraction: for measuring. */
  get elapsedMs(): number {
    return this.#nowMs - beginsMs;
  }

  /** How many wait to be run. */
  get pending(): number {
    return this.#later.size + this.#soon.length - this.#soonAt;
  }

  /** How many were run, ever. */
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

  /** Runs it behind all that falls due now: what setImmediate is elsewhere. */
  soon(run: () => void): void {
    this.#soon.push(run);
  }

  /** Resolves behind all that falls due now. */
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

  /** Lets time pass until nothing is left to run, however far away; throws when that takes longer than `maxMs`. */
  async settle(maxMs: number): Promise<void> {
    await this.#run(this.#nowMs + maxMs, () => false);
    if (this.pending > 0) throw new Error(`${this.pending} tasks are left after ${maxMs} ms`);
  }

  /** Lets time pass until the condition holds, which is asked before each task; whether it does within `maxMs`. */
  async until(condition: () => boolean, maxMs: number): Promise<boolean> {
    const untilMs = this.#nowMs + maxMs;
    await this.#run(untilMs, condition);
    if (condition()) return true;
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    return false;
  }

  /** Lets time pass until the promise settles, and gives its value; throws when it does not within `maxMs`. */
  async awaited<T>(promise: Promise<T>, maxMs: number): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    // Whoever awaits `settled` below hears of a failure; until then nobody does.
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

  /** Whether there was one that falls due until then. */
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
    // Cancelling what runs already is nothing.
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
