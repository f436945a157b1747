/**
 * Hands requests on in small turns of the event loop, first come, first served. HTTP/2 brings as many as fit into one read of a socket, over a
 * thousand of them when a client takes each back at once: those are gone by their turn, and cost no more.
 *
 *   one read: 1,000 requests, 990 taken back ─▶ 10 handled │ other work │ …
 */
import { setImmediate } from 'node:timers';
import type { Exchange } from './exchange.js';

/** Some five milliseconds' worth. */
const handledInOneTurn = 32;

export class Turns {
  readonly #handle: (exchange: Exchange) => void;
  #waiting: Exchange[] = [];

  constructor(handle: (exchange: Exchange) => void) {
    this.#handle = handle;
  }

  add(exchange: Exchange): void {
    this.#waiting.push(exchange);
    if (this.#waiting.length === 1) setImmediate(() => this.#turn());
  }

  #turn(): void {
    let handled = 0;
    let at = 0;
    for (; at < this.#waiting.length && handled < handledInOneTurn; at += 1) {
      const exchange = this.#waiting[at]!;
      if (exchange.isEnded) continue;
      handled += 1;
      this.#handle(exchange);
    }
    this.#waiting = this.#waiting.slice(at);
    if (this.#waiting.length > 0) setImmediate(() => this.#turn());
  }
}
