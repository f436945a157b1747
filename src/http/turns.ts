/**
 * Hands requests on in small turns of the event loop, in which callers take turns: a thousand requests of one caller delay another's by a few.
 *
 *   caller a: ■ ■ ■ ■ … ┐
 *   caller b: ■         ├▶ a b c a c a … │ other work │ a a a …
 *   caller c: ■ ■       ┘
 *
 * HTTP/2 brings as many as fit into one read of a socket, over a thousand of them when a client takes each back at once: those are gone by
 * their turn, and cost no more.
 */
import { setImmediate } from 'node:timers';
import type { Exchange } from './exchange.js';

/** Some five milliseconds' worth. */
const handledInOneTurn = 32;

export class Turns {
  readonly #handle: (exchange: Exchange) => void;
  /** In the order of their turns; none is empty. */
  readonly #callers = new Map<string, Exchange[]>();

  constructor(handle: (exchange: Exchange) => void) {
    this.#handle = handle;
  }

  add(caller: string, exchange: Exchange): void {
    const own = this.#callers.get(caller);
    if (own !== undefined) own.push(exchange);
    else if (this.#callers.set(caller, [exchange]).size === 1) setImmediate(() => this.#turn());
  }

  #turn(): void {
    for (let handled = 0; handled < handledInOneTurn && this.#callers.size > 0;) {
      for (const [caller, own] of this.#callers) {
        const next = own.findIndex(({ isEnded }) => !isEnded);
        const exchange = own[next];
        own.splice(0, next < 0 ? own.length : next + 1);
        if (own.length === 0) this.#callers.delete(caller);
        if (exchange === undefined) continue;
        handled += 1;
        this.#handle(exchange);
      }
    }
    if (this.#callers.size > 0) setImmediate(() => this.#turn());
  }
}
