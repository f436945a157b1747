/** The body of an answer, of which its reader takes nothing for a while: what comes meanwhile is gathered, and counted. */
import { Readable } from 'node:stream';
import { GatheredBytes } from '../domain/gathered-bytes.js';
import type { Room } from '../domain/room.js';

/** Where what is unread counts. */
export type UnreadRoom = Pick<Room, 'tryTake' | 'give'>;

/** `signal`: ends the body, also when all of it has come. */
export type UnreadBodyOptions = Readonly<{ room?: UnreadRoom | undefined; signal?: AbortSignal | undefined }>;

const uncounted: UnreadRoom = Object.freeze({ tryTake: () => true, give: () => {} });

/**
 * What comes from `source`, a message of HTTP/1.1 or a stream of HTTP/2, for one reader. Source and body end apart: a source that has ended closes at once, and Node drops what is
 * unread of a stream when its connection closes. Without room for a piece the body is destroyed.
 *
 * To be made before the first piece can have come. The reader takes what there is, never a number of bytes. An error of the source destroys the body; a
 * source that is cut off without one ends it.
 */
export class UnreadBody extends Readable {
  readonly #source: Readable;
  readonly #room: UnreadRoom;
  readonly #unread = new GatheredBytes();
  #hasSourceEnded = false;
  #isWhole = false;

  constructor(source: Readable, { room = uncounted, signal }: UnreadBodyOptions = {}) {
    super({ highWaterMark: source.readableHighWaterMark, ...(signal !== undefined && { signal }) });
    this.#source = source;
    this.#room = room;
    const end = source.push.bind(source, null);
    source.push = (piece: Uint8Array | null) => {
      if (piece !== null) return this.#take(piece);
      // Node says so of a source that is destroyed, too, and of a stream that was reset without an error.
      this.#isWhole ||= !source.destroyed && !source.closed;
      if (this.#isWhole) this.#endSource();
      return end();
    };
    // What breaks a source is said when it closes, unless all of it had come; and whoever reads hears of it.
    source.on('error', () => {});
    this.on('error', () => {});
    source.once('close', () => {
      if (source.errored === null || this.#hasSourceEnded) this.#endSource();
      else this.destroy(source.errored);
    });
    // Nothing stays in it, so that it says its end at once.
    source.resume();
  }

  /** Whether the source has said that this is all: what ends its connection later takes nothing of it. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  override read(size?: number): unknown {
    // Node asks for nothing when it looks whether there is more to read. What flows is handed over within `push`, until its reader pauses.
    while (size !== 0 && this.#unread.bytes > 0 && this.readableLength === 0 && !this.#isPaused()) {
      const piece = this.#unread.shift();
      this.#room.give(piece?.length ?? 0);
      this.push(piece);
      if (this.#unread.bytes === 0 && this.#hasSourceEnded) this.push(null);
    }
    return super.read(size) as unknown;
  }

  override _read(size: number): void {
    if (!this.#hasSourceEnded && this.#unread.bytes < this.readableHighWaterMark) this.#source._read(size);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#room.give(this.#unread.bytes);
    this.#unread.take();
    if (!this.#hasSourceEnded) this.#source.destroy();
    done(error);
  }

  /** To Node, who reads as `readable` says is paused, too. */
  #isPaused(): boolean {
    return this.isPaused() && this.listenerCount('readable') === 0;
  }

  /** Whether more is wanted. */
  #take(piece: Uint8Array): boolean {
    if (this.destroyed) return false;
    if (this.#unread.bytes === 0 && this.readableLength === 0 && !this.#isPaused()) return this.push(piece);
    if (this.#room.tryTake(piece.length)) this.#unread.add(piece);
    else this.destroy();
    return this.readableLength + this.#unread.bytes < this.readableHighWaterMark;
  }

  #endSource(): void {
    if (this.#hasSourceEnded) return;
    this.#hasSourceEnded = true;
    if (this.#unread.bytes === 0) this.push(null);
  }
}
