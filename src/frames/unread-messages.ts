/**
 * Received messages that wait for their one reader.
 *
 * Bounds: messagesMax messages, or bytesMax bytes; then the owner must stop reading from the
 * network. The last piece from the network, at most 64 KiB, may exceed the bound.
 */
import { deferred, type Deferred } from '../domain/base/promises.js';

export type UnreadOptions = Readonly<{ messagesMax: number; bytesMax: number }>;

export class UnreadMessages {
  readonly #options: UnreadOptions;
  #messages: Uint8Array[] = [];
  #bytes = 0;
  /** Set when no more messages will arrive. `error` is thrown once all messages are read. */
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

  /** Only the first call counts. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake();
  }

  drop(): void {
    this.#messages = [];
    this.#bytes = 0;
    this.end();
  }

  get isEmpty(): boolean {
    return this.#messages.length === 0;
  }

  async arrived(): Promise<void> {
    if (!this.isEmpty || this.#end !== undefined) return;
    this.#arrival ??= deferred();
    await this.#arrival.promise;
  }

  /**
   * Removes and returns the next message; undefined if there is none. Throws the error with which
   * the messages ended.
   */
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
