/**
 * Hands out the time of turns of the event loop, in which callers take turns: a thousand requests of one caller delay another's by a few.
 *
 *   caller a: ■ ■ ■ ■ … ┐
 *   caller b: ■         ├▶ a b c a c a … │ other work │ a a a …
 *   caller c: ■ ■       ┘
 *
 * HTTP/2 brings as many requests, and ends as many bodies, as fit into one read of a socket: over a thousand when a client takes each back at once. What a task costs
 * is known only once it is done: headers of 60 kB and metadata of 280 kB take milliseconds each.
 */
import { setImmediate } from 'node:timers';

/** A turn ends once it has worked for so long: its last task may exceed that. */
const turnMsMax = 5;

export class Turns {
  readonly #nowMs: () => number;
  /** In the order of their turns; none is empty. */
  readonly #callers = new Map<string, (() => void)[]>();
  #isRunning = false;
  #untilMs = 0;

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Never runs it in the tick of the call. */
  add(caller: string, task: () => void): void {
    const own = this.#callers.get(caller);
    if (own === undefined) this.#callers.set(caller, [task]);
    else own.push(task);
    if (this.#isRunning) return;
    this.#isRunning = true;
    setImmediate(() => this.#turn());
  }

  /** Resolves when it is the caller's turn. */
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
    // The tick behind all microtasks: what the task does until it waits for something counts too.
    queueMicrotask(() => process.nextTick(() => (this.#nowMs() < this.#untilMs ? this.#next() : setImmediate(() => this.#turn()))));
  }
}
