/**
 * Hands out small turns of the event loop, in which callers take turns: a thousand requests of one caller delay another's by a few.
 *
 *   caller a: ■ ■ ■ ■ … ┐
 *   caller b: ■         ├▶ a b c a c a … │ other work │ a a a …
 *   caller c: ■ ■       ┘
 *
 * HTTP/2 brings as many requests, and ends as many bodies, as fit into one read of a socket: over a thousand when a client takes each back at once. Those are gone
 * by their turn, and cost no more.
 */
import { setImmediate } from 'node:timers';

type Waiting<Task> = Readonly<{ task: Task; cost: number }>;

export class Turns<Task extends Readonly<{ isEnded: boolean }>> {
  readonly #run: (task: Task) => void;
  readonly #costMax: number;
  /** In the order of their turns; none is empty. */
  readonly #callers = new Map<string, Waiting<Task>[]>();

  /** A turn ends once what it has run costs `costMax`, so that its last task may exceed that. */
  constructor(run: (task: Task) => void, { costMax }: { costMax: number }) {
    this.#run = run;
    this.#costMax = costMax;
  }

  /** Never runs it in the tick of the call. */
  add(caller: string, task: Task, cost = 1): void {
    const own = this.#callers.get(caller);
    if (own !== undefined) own.push({ task, cost });
    else if (this.#callers.set(caller, [{ task, cost }]).size === 1) setImmediate(() => this.#turn());
  }

  #turn(): void {
    let left = this.#costMax;
    // A caller who has more is added again, and so comes again.
    for (const [caller, own] of this.#callers) {
      const next = own.findIndex(({ task }) => !task.isEnded);
      const waiting = own[next];
      own.splice(0, next < 0 ? own.length : next + 1);
      this.#callers.delete(caller);
      if (own.length > 0) this.#callers.set(caller, own);
      if (waiting === undefined) continue;
      this.#run(waiting.task);
      left -= waiting.cost;
      if (left <= 0) break;
    }
    if (this.#callers.size > 0) setImmediate(() => this.#turn());
  }
}
