/**
 * In what pieces the bodies of a connection come. Each piece costs a call and an object, however short it is: chunks or frames of a byte cost a hundred times what
 * their bytes do. Node neither counts them nor says that they come, but hands each to `push`.
 *
 * What pieces lack of `pieceBytesMin` counts as buffered bytes of their caller until their request ends. Bound: `shortBytesMax` of it on a connection, beyond
 * `shortBytesFree` only while there is room. Longer pieces and further requests make up for it.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Budget } from '../domain/budget.js';
import { isHttp2 } from './transport.js';

/** What Node keeps for a piece. */
const pieceBytesMin = 256;
const shortBytesMax = 4_096 * pieceBytesMin;
/** Whoever's room is full by what others read for it sends a short body all the same. */
const shortBytesFree = 256 * pieceBytesMin;
/** A short body has some short pieces. */
const shortBytesOfRequest = 16 * pieceBytesMin;

export class BodyPieces<Request> {
  readonly #room: Budget;
  /** Of all that came, less what made up for it. */
  #shortBytes = 0;
  /** What is taken of the room. */
  readonly #held = new Map<Request, number>();

  constructor(room: Budget) {
    this.#room = room;
  }

  /** A piece of that request's body has come. False when it is one too many. */
  tryTake(request: Request, bytes: number): boolean {
    const shortBytes = pieceBytesMin - bytes;
    if (shortBytes > 0) {
      if (this.#shortBytes + shortBytes > shortBytesMax) return false;
      if (this.#shortBytes < shortBytesFree) this.#room.add(shortBytes);
      else if (!this.#room.tryTake(shortBytes)) return false;
      this.#held.set(request, (this.#held.get(request) ?? 0) + shortBytes);
    }
    this.#shortBytes = Math.max(0, this.#shortBytes + shortBytes);
    return true;
  }

  ended(request: Request): void {
    this.#room.give(this.#held.get(request) ?? 0);
    this.#held.delete(request);
    this.#shortBytes = Math.max(0, this.#shortBytes - shortBytesOfRequest);
  }

  /** The connection is closed. */
  close(): void {
    for (const request of this.#held.keys()) this.ended(request);
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
