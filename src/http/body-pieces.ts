/**
 * In what pieces the bodies of a connection come. Each piece costs a call and an object, however short it is: chunks or frames of a byte cost a hundred times what
 * their bytes do. Node neither counts them nor says that they come, but hands each to `push`.
 *
 * Bound: what pieces lack of `pieceBytesMin` counts as buffered bytes of their caller, `shortBytesMax` of it at most. Longer pieces and further requests make up for it.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Budget } from '../domain/budget.js';
import { isHttp2 } from './transport.js';

/** What Node keeps for a piece. */
const pieceBytesMin = 256;
const shortBytesMax = 4_096 * pieceBytesMin;
/** A request with a short body has made two short pieces. */
const shortBytesOfRequest = 2 * pieceBytesMin;

export class BodyPieces {
  readonly #room: Budget;
  #shortBytes = 0;

  constructor(room: Budget) {
    this.#room = room;
  }

  /** A request has come. */
  request(): void {
    this.#giveBack(shortBytesOfRequest);
  }

  /** A piece has come. False when it is one too many. */
  tryTake(bytes: number): boolean {
    const shortBytes = pieceBytesMin - bytes;
    if (shortBytes <= 0) this.#giveBack(-shortBytes);
    else if (this.#shortBytes + shortBytes > shortBytesMax || !this.#room.tryTake(shortBytes)) return false;
    else this.#shortBytes += shortBytes;
    return true;
  }

  /** The connection is closed. */
  close(): void {
    this.#giveBack(this.#shortBytes);
  }

  #giveBack(bytes: number): void {
    const given = Math.min(bytes, this.#shortBytes);
    if (given === 0) return;
    this.#shortBytes -= given;
    this.#room.give(given);
  }
}

/** Calls `take` with the length of each piece of a body as it comes in, and drops what that refuses. To be called before the first of them can have come. */
export function takePieces(message: IncomingMessage, take: (bytes: number) => boolean): void {
  const body: Readable = isHttp2(message) ? message.stream : message;
  const push = body.push.bind(body);
  body.push = (piece: Buffer | null) => (piece === null || take(piece.length)) && push(piece);
  // Of a body that nobody has begun to read when it is answered, Node would drop the rest past `push`.
  if (body === message) message.read(0);
}
