/**
 * Limits how finely a peer may cut its bodies. Each piece costs a call and an object, so chunks or
 * DATA frames of one byte cost a hundred times as much as their bytes. Node does not count or
 * announce pieces, but passes each to `push`.
 *
 * If a piece is shorter than `pieceBytesMin`, the missing bytes count as buffered bytes of the
 * caller until the request ends. Longer pieces and ended requests reduce the count.
 *
 * Bound: `shortBytesMax` of these bytes on a connection; beyond `shortBytesFree`, only while the
 * caller's budget is not full.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Budget } from '../domain/base/budget.js';
import { isHttp2 } from './transport.js';

/** The memory that Node uses for a piece. */
const pieceBytesMin = 256;
const shortBytesMax = 4_096 * pieceBytesMin;
/**
 * Allowed even if the budget is full, so that a caller that buffers much elsewhere can still send
 * a short body.
 */
const shortBytesFree = 256 * pieceBytesMin;
/**
 * Each ended request reduces the count by this, because even a short body has a few short pieces.
 */
const shortBytesOfRequest = 16 * pieceBytesMin;

export class BodyPieces<Request> {
  readonly #budget: Budget;
  /** The missing bytes of all short pieces, reduced by longer pieces and ended requests. */
  #shortBytes = 0;
  /** Bytes reserved in the budget, by request. */
  readonly #held = new Map<Request, number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Counts a piece of the request's body. Returns false if the limit is exceeded. */
  tryReserve(request: Request, bytes: number): boolean {
    const shortBytes = pieceBytesMin - bytes;
    if (shortBytes > 0) {
      if (this.#shortBytes + shortBytes > shortBytesMax) return false;
      if (this.#shortBytes < shortBytesFree) this.#budget.add(shortBytes);
      else if (!this.#budget.tryReserve(shortBytes)) return false;
      this.#held.set(request, (this.#held.get(request) ?? 0) + shortBytes);
    }
    this.#shortBytes = Math.max(0, this.#shortBytes + shortBytes);
    return true;
  }

  ended(request: Request): void {
    this.#budget.release(this.#held.get(request) ?? 0);
    this.#held.delete(request);
    this.#shortBytes = Math.max(0, this.#shortBytes - shortBytesOfRequest);
  }

  close(): void {
    for (const request of this.#held.keys()) this.ended(request);
  }
}

/**
 * Calls `take` with the length of each incoming piece of a body, and drops the piece if `take`
 * returns false. Must be called before the first piece can have arrived.
 */
export function readPieces(message: IncomingMessage, take: (bytes: number) => boolean): void {
  const body: Readable = isHttp2(message) ? message.stream : message;
  const push = body.push.bind(body);
  body.push = (piece: Buffer | null) => (piece === null || take(piece.length)) && push(piece);
  // Start reading. Otherwise, if the answer comes before any read, Node drops the rest of the body
  // without calling `push`.
  if (body === message) message.read(0);
}
