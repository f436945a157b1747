/**
 * Both ends of a connection in memory. Each end reads what the other sends, in order; frames sent
 * before a close still arrive.
 */
import { deferred, type Deferred } from '../../../src/domain/base/promises.js';
import { byeReasons, type ByeReason } from '../../../src/frames/bye.js';
import type { FrameConnection } from '../../../src/frames/frame-connection.js';
import type { Frame } from '../../../src/frames/frame.js';

export class ConnectionEnd implements FrameConnection {
  readonly peer: string;
  readonly bufferedBytes = 0;
  readonly sent: Frame[] = [];
  readonly #closed = deferred<Readonly<{ code: number }>>();
  readonly #inbox: Frame[] = [];
  #arrival: Deferred<void> = deferred();
  #other: ConnectionEnd | undefined;
  #isOpen = true;

  private constructor(peer: string) {
    this.peer = peer;
  }

  static pair(peers: readonly [string, string] = ['one', 'other']): readonly [ConnectionEnd, ConnectionEnd] {
    const [one, other] = [new ConnectionEnd(peers[1]), new ConnectionEnd(peers[0])];
    one.#other = other;
    other.#other = one;
    return [one, other];
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get closed(): Promise<Readonly<{ code: number }>> {
    return this.#closed.promise;
  }

  silentSinceMs(): undefined {
    return undefined;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  send(frame: Frame): void {
    if (!this.#isOpen) return;
    this.sent.push(frame);
    this.#other?.receive(frame);
  }

  receive(frame: Frame): void {
    this.#inbox.push(frame);
    this.#wake();
  }

  async *frames(): AsyncGenerator<Frame> {
    for (;;) {
      const frame = this.#inbox.shift();
      if (frame !== undefined) yield frame;
      else if (!this.#isOpen) return;
      else await this.#arrival.promise;
    }
  }

  close(reason: ByeReason, message: string, retryAfterMs?: number): void {
    this.send({ kind: 'bye', reason, message, retryAfterMs });
    this.#inbox.length = 0;
    this.end(byeReasons[reason].code);
  }

  terminate(): void {
    this.end(1006);
  }

  /** Closes both ends; frames that have arrived can still be read. */
  end(code: number): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#closed.resolve({ code });
    this.#wake();
    this.#other?.end(code);
  }

  #wake(): void {
    this.#arrival.resolve();
    this.#arrival = deferred();
  }
}
