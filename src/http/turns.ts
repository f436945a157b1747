/**
 * Turns of the event loop, in which callers alternate: a thousand requests of one caller delay
 * another by a few.
 *
 *   caller a: ■ ■ ■ ■ … ┐
 *   caller b: ■         ├▶ a b c a c a … │ other work │ a a a …
 *   caller c: ■ ■       ┘
 *
 * One read of an HTTP/2 socket may start over a thousand requests, if a client cancels each at
 * once, and may end as many bodies. The cost of a task is known only afterwards: headers of 60 kB
 * and metadata of 280 kB take milliseconds each.
 */
import { setImmediate } from 'node:timers';

/** A turn ends after this time; its last task may exceed it. */
const turnMsMax = 5;

export class Turns {
  readonly #nowMs: () => number;
  /** The tasks of each caller that has some, in the order of the callers' turns. */
  readonly #callers = new Map<string, (() => void)[]>();
  #isRunning = false;
  #untilMs = 0;

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Never runs the task in the tick of the call. */
  add(caller: string, task: () => void): void {
    const own = this.#callers.get(caller);
    if (own === undefined) this.#callers.set(caller, [task]);
    else own.push(task);
    if (this.#isRunning) return;
    this.#isRunning = true;
    setImmediate(() => this.#turn());
  }

  turn(caller: string): Promise<void> {
    return new Promise((go) => this.add(caller, go));
  }

  #turn(): void {
    this.#untilMs = this.#nowMs() + turnMsMax;
    this.#next();
  }

  #next(): void {
    const [first] = this.#callers;
    if (first === undefined) {
      this.#isRunning = false;
      return;
    }
    const [caller, own] = first;
    const task = own.shift()!;
    this.#callers.delete(caller);
    if (own.length > 0) this.#callers.set(caller, own);
    task();
    // Continue only after all microtasks and ticks, to count all work of the task before its first
    // wait.
    queueMicrotask(() => process.nextTick(() => (this.#nowMs() < this.#untilMs ? this.#next() : setImmediate(() => this.#turn()))));
  }
}
