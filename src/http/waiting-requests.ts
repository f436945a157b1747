/**
 * Pipelined requests of one HTTP/1.1 connection. Nothing is done for a request before its turn.
 *
 * Bounds: `waitingMax` requests, and the memory of their caller.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Budget } from '../domain/base/budget.js';
import { headerBytesOf } from './session-settings.js';

/** Clients that pipeline send a few requests at a time. */
const waitingMax = 32;
/** Node's memory for a request, besides its headers. */
export const requestBytes = 4 * 1024;
/** How much of an unread body Node buffers: its stream's buffer, and one TLS record. */
const unreadBodyBytesMax = 32 * 1024;

type Waiting = Readonly<{ request: IncomingMessage; response: ServerResponse; bytes: number }>;

export class WaitingRequests {
  readonly #budget: Budget;
  readonly #waiting: Waiting[] = [];

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** The answer that will be sent last. */
  get lastResponse(): ServerResponse | undefined {
    return this.#waiting.at(-1)?.response;
  }

  tryAdd(request: IncomingMessage, response: ServerResponse): boolean {
    const bytes = bytesOf(request);
    if (this.#waiting.length >= waitingMax || !this.#budget.tryReserve(bytes)) return false;
    this.#waiting.push({ request, response, bytes });
    return true;
  }

  next(): Waiting | undefined {
    const next = this.#waiting.shift();
    if (next !== undefined) this.#budget.release(next.bytes);
    return next;
  }

  clear(): void {
    while (this.next() !== undefined);
  }
}

function bytesOf(request: IncomingMessage): number {
  const { headers } = request;
  const bodyBytes = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : unreadBodyBytesMax;
  return requestBytes + headerBytesOf(request) + Math.min(bodyBytes, unreadBodyBytesMax);
}
