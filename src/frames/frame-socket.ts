/**
 * An open websocket that carries frames, the same at both ends.
 *
 * Bounds: unread messages as in unread-messages.ts; beyond them the socket stops reading. Unsent
 * bytes up to `bufferedBytesMax` and one frame; beyond them the connection is terminated. A sender
 * that waits for `drained` stays far below that.
 *
 * `frames` waits for a turn of the event loop, and for another whenever its reader has worked for
 * `sliceMs`. Otherwise thousands of small frames from one peer would delay all other peers.
 *
 * A peer that floods, sends text or breaks the websocket protocol ends the frames with a BadFrame.
 * A silent peer is disconnected.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import { WebSocket, type RawData } from 'ws';
import { deferred, type Deferred } from '../domain/base/promises.js';
import type { Clock } from '../domain/ports.js';
import { BadFrame } from './bad-frame.js';
import { byeReasons, type ByeReason } from './bye.js';
import type { Closing, FrameConnection } from './frame-connection.js';
import type { Frame } from './frame.js';
import { Liveness } from '../domain/base/liveness.js';
import { readFrame, writeFrame } from './frame-codec.js';
import type { FrameSocketOptions } from './socket-options.js';
import { UnreadMessages } from './unread-messages.js';

/** `turn`: resolves in a later turn of the event loop, when this connection may work. */
export type FrameSocketParts = Readonly<{ socket: WebSocket; peer: string; clock: Clock; turn?: (() => Promise<void>) | undefined }>;

const unreadMessagesMax = 8;
const sliceMs = 2;
/**
 * Maximum pongs between two pings. A peer may send some unsolicited ones, to show that it is alive.
 */
const pongsMax = 1_000;

export class FrameSocket implements FrameConnection {
  readonly peer: string;
  readonly closed: Promise<Closing>;
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  readonly #turn: () => Promise<void>;
  readonly #options: FrameSocketOptions;
  readonly #unread: UnreadMessages;
  readonly #liveness: Liveness;
  #drained: Deferred<void> | undefined;
  /** The peer has broken the rules: nothing more is read from the peer. */
  #isBad = false;
  #pongs = 0;
  #cancelGrace: (() => void) | undefined;

  /** `socket` must have opened in this very tick, so that no event is missed. */
  constructor({ socket, peer, clock, turn = () => immediate() }: FrameSocketParts, options: FrameSocketOptions) {
    this.peer = peer;
    this.#socket = socket;
    this.#clock = clock;
    this.#turn = turn;
    this.#options = options;
    this.#unread = new UnreadMessages({ messagesMax: unreadMessagesMax, bytesMax: options.frameBytesMax });
    this.#liveness = new Liveness(
      clock,
      { ping: () => this.#ping(), listening: () => !socket.isPaused, onDead: () => socket.terminate() },
      options,
    );
    const { promise, resolve } = deferred<Closing>();
    this.closed = promise;
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    socket.on('pong', (data) => this.#answered(data));
    socket.on('error', (error) => this.#break(error));
    socket.on('close', (code, reason) => {
      this.#settle();
      resolve(reason.length === 0 ? { code } : { code, reason: reason.toString() });
    });
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  silentSinceMs(): number | undefined {
    return this.#liveness.silentSinceMs();
  }

  send(frame: Frame): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    if (this.bufferedBytes > this.#options.bufferedBytesMax) return this.terminate();
    // Frames of one tick are not gathered into one write: for ten small ones that would save 0.5
    // microseconds each.
    this.#socket.send(writeFrame(frame), () => this.#checkDrained());
  }

  drained(): Promise<void> {
    if (this.#hasDrained()) return Promise.resolve();
    this.#drained ??= deferred();
    return this.#drained.promise;
  }

  async *frames(): AsyncGenerator<Frame, void, undefined> {
    for (let leftMs = 0; ;) {
      if (this.#unread.isEmpty || leftMs <= 0) {
        await this.#unread.arrived();
        await this.#turn();
        leftMs = sliceMs;
      }
      const message = this.#unread.take();
      if (message === undefined) return;
      if (this.#socket.isPaused && !this.#unread.full && !this.#isBad) this.#socket.resume();
      const begunMs = this.#clock.now();
      yield this.#read(message);
      leftMs -= this.#clock.now() - begunMs;
    }
  }

  close(reason: ByeReason, message: string, retryAfterMs?: number): void {
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.send({ kind: 'bye', reason, message, retryAfterMs });
      this.#socket.close(byeReasons[reason].code);
    }
    this.#finish();
  }

  terminate(): void {
    this.#socket.terminate();
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#isBad) return;
    this.#liveness.received();
    if (!isBinary || !Buffer.isBuffer(data)) return this.#endBadly('the peer sent a text message, but frames are binary messages');
    this.#unread.put(data);
    if (this.#unread.full) this.#socket.pause();
  }

  #answered(data: Buffer): void {
    if (this.#isBad) return;
    this.#pongs += 1;
    if (this.#pongs > pongsMax) return this.#endBadly(`the peer sent more than ${pongsMax} pongs between two pings`);
    this.#liveness.received(Number(data.toString()) || undefined);
  }

  /**
   * Reads nothing more from the peer, and ignores messages that were read from the network already.
   * After the grace period the connection is terminated if it has not closed.
   */
  #endBadly(why: string): void {
    this.#isBad = true;
    this.#socket.pause();
    this.#unread.end(new BadFrame(why));
    this.#startGrace();
  }

  #read(message: Uint8Array): Frame {
    try {
      return readFrame(message);
    } catch (error) {
      this.#unread.drop();
      throw error;
    }
  }

  #ping(): void {
    this.#pongs = 0;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping(String(this.#clock.now()));
  }

  /**
   * A network error ends the frames. An error with one of ws' own codes is the peer's fault, and
   * ends them with a BadFrame.
   */
  #break(error: Error): void {
    const isPeers = 'code' in error && typeof error.code === 'string' && error.code.startsWith('WS_ERR_');
    this.#unread.end(isPeers ? new BadFrame(error.message) : undefined);
    this.#startGrace();
  }

  /**
   * Drops messages that the peer still sends until the connection is closed. Reads nothing from a
   * peer that has broken the rules.
   */
  #finish(): void {
    this.#unread.drop();
    this.#liveness.stop();
    if (!this.#isBad) this.#socket.resume();
    this.#startGrace();
  }

  #startGrace(): void {
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    this.#cancelGrace ??= this.#clock.after(this.#options.closeGraceMs, () => this.#socket.terminate());
  }

  #settle(): void {
    this.#liveness.stop();
    this.#cancelGrace?.();
    this.#unread.end();
    this.#checkDrained();
  }

  #hasDrained(): boolean {
    return this.#socket.readyState !== WebSocket.OPEN || this.bufferedBytes <= this.#options.bufferedBytesLow;
  }

  #checkDrained(): void {
    if (this.#drained === undefined || !this.#hasDrained()) return;
    this.#drained.resolve();
    this.#drained = undefined;
  }
}
