/**
 * Messages that have come and wait for their one reader.
 *
 * Bounds: messagesMax of them, or bytesMax together; then the owner is asked to stop the network. What the last piece
 * from the network held beyond that is still kept, and a piece is 64 KiB at most.
 */
import { deferred, type Deferred } from '../domain/deferred.js';

export type UnreadOptions = Readonly<{ messagesMax: number; bytesMax: number }>;

export class UnreadMessages {
  readonly #options: UnreadOptions;
  #messages: Uint8Array[] = [];
  #bytes = 0;
  /** Nothing comes any more; `error` is to be thrown once what is here is read. */
  #end: Readonly<{ error: Error | undefined }> | undefined;
  #arrival: Deferred<void> | undefined;

  constructor(options: UnreadOptions) {
    this.#options = options;
  }

  get full(): boolean {
    return this.#messages.length >= this.#options.messagesMax || this.#bytes >= this.#options.bytesMax;
  }

  put(message: Uint8Array): void {
    if (this.#end !== undefined) return;
    this.#messages.push(message);
    this.#bytes += message.byteLength;
    this.#wake();
  }

  /** The first end counts. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake();
  }

  /** Ends, and forgets what was not read. */
  drop(): void {
    this.#messages = [];
    this.#bytes = 0;
    this.end();
  }

  get isEmpty(): boolean {
    return this.#messages.length === 0;
  }

  /** Resolves once there is a message, or its end. */
  async arrived(): Promise<void> {
    if (!this.isEmpty || this.#end !== undefined) return;
    this.#arrival ??= deferred();
    await this.#arrival.promise;
  }

  /** The next message that has arrived; undefined behind the last. Throws what it ended with. */
  take(): Uint8Array | undefined {
    const message = this.#messages.shift();
    if (message !== undefined) this.#bytes -= message.byteLength;
    else if (this.#end?.error !== undefined) throw this.#end.error;
    return message;
  }

  #wake(): void {
    this.#arrival?.resolve();
    this.#arrival = undefined;
  }
}
