/**
 * The body of an answer whose reader may pause. Bytes that arrive meanwhile are kept in memory and
 * counted.
 */
import { Readable } from 'node:stream';
import { GatheredBytes } from '../domain/base/gathered-bytes.js';
import type { MemoryReservation } from '../domain/base/memory-reservation.js';

export type UnreadMemory = Pick<MemoryReservation, 'tryReserve' | 'release'>;

/** `signal`: ends the body, even once all of it has arrived. */
export type UnreadBodyOptions = Readonly<{ memory?: UnreadMemory | undefined; signal?: AbortSignal | undefined }>;

const uncounted: UnreadMemory = Object.freeze({ tryReserve: () => true, release: () => {} });

/**
 * Passes the bytes of `source`, a message of HTTP/1.1 or a stream of HTTP/2, to one reader. Source
 * and body end separately. No bytes wait in the source, so it closes as soon as it has ended. When
 * a connection closes, Node drops the unread bytes of its streams, but not those in the body. If
 * `memory` has no space for a piece, the body is destroyed.
 *
 * Create it before the first piece can have arrived. Its reader must read all that there is, never
 * a given number of bytes. An error of the source destroys the body; a source that is cut off
 * without an error ends the body.
 */
export class UnreadBody extends Readable {
  readonly #source: Readable;
  readonly #memory: UnreadMemory;
  readonly #unread = new GatheredBytes();
  #hasSourceEnded = false;
  #isComplete = false;

  constructor(source: Readable, { memory = uncounted, signal }: UnreadBodyOptions = {}) {
    super({ highWaterMark: source.readableHighWaterMark, ...(signal !== undefined && { signal }) });
    this.#source = source;
    this.#memory = memory;
    const end = source.push.bind(source, null);
    source.push = (piece: Uint8Array | null) => {
      if (piece !== null) return this.#take(piece);
      // Node also pushes null when a source is destroyed, and when a stream was reset without an
      // error.
      this.#isComplete ||= !source.destroyed && !source.closed;
      if (this.#isComplete) this.#endSource();
      return end();
    };
    // `close` reports the source's error, unless the whole body had arrived. The reader gets the
    // error from the body.
    source.on('error', () => {});
    this.on('error', () => {});
    source.once('close', () => {
      if (source.errored === null || this.#hasSourceEnded) this.#endSource();
      else this.destroy(source.errored);
    });
    // Keeps the source empty, so that it ends at once.
    source.resume();
  }

  /** Whether the whole body has arrived. A later end of the connection does not change that. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  override read(size?: number): unknown {
    // Node calls `read(0)` only to find out whether there is more. While the reader is not paused,
    // `push` passes each piece on at once.
    while (size !== 0 && this.#unread.bytes > 0 && this.readableLength === 0 && !this.#isPaused()) {
      const piece = this.#unread.shift();
      this.#memory.release(piece?.length ?? 0);
      this.push(piece);
      if (this.#unread.bytes === 0 && this.#hasSourceEnded) this.push(null);
    }
    return super.read(size) as unknown;
  }

  override _read(size: number): void {
    if (!this.#hasSourceEnded && this.#unread.bytes < this.readableHighWaterMark) this.#source._read(size);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#memory.release(this.#unread.bytes);
    this.#unread.take();
    if (!this.#hasSourceEnded) this.#source.destroy();
    done(error);
  }

  /** For Node, a reader with a `readable` listener counts as paused too. */
  #isPaused(): boolean {
    return this.isPaused() && this.listenerCount('readable') === 0;
  }

  /** Returns whether more is wanted. */
  #take(piece: Uint8Array): boolean {
    if (this.destroyed) return false;
    if (this.#unread.bytes === 0 && this.readableLength === 0 && !this.#isPaused()) return this.push(piece);
    if (this.#memory.tryReserve(piece.length)) this.#unread.add(piece);
    else this.destroy();
    return this.readableLength + this.#unread.bytes < this.readableHighWaterMark;
  }

  #endSource(): void {
    if (this.#hasSourceEnded) return;
    this.#hasSourceEnded = true;
    if (this.#unread.bytes === 0) this.push(null);
  }
}
