/**
 * One end of a simulated connection. Its frames and its endings behave like those of FrameSocket.
 *
 *   open ── close ──▶ closing ── the peer has closed too, or a grace is over ──▶ closed
 *   open ── the peer's close, a break, terminate, silence ──▶ closed
 *   open ── its host crashed ──▶ silent: none of its promises settles, because the process is gone
 */
import { BadFrame } from '../../src/frames/bad-frame.js';
import { byeReasons, type ByeReason } from '../../src/frames/bye.js';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import type { Frame } from '../../src/frames/frame.js';
import { readFrame } from '../../src/frames/frame-codec.js';
import { deferred, type Deferred } from '../../src/domain/base/promises.js';
import type { NetworkLine } from './network-line.js';
import type { NetworkPipe, Parcel } from './network-pipe.js';
import type { VirtualTime } from './virtual-time.js';

export type EndOptions = Readonly<{ bufferedBytesLow: number; bufferedBytesMax: number; closeGraceMs: number; idleTimeoutMs: number }>;

export type EndParts = Readonly<{
  peer: string;
  time: VirtualTime;
  /** The clock of its host. */
  now: () => number;
  /** The line on which frames arrive. */
  line: NetworkLine;
  /**
   * `out`: the pipe for frames that leave. `into`: the pipe of arriving frames, whose window
   * reading frees.
   */
  out: () => NetworkPipe;
  into: () => NetworkPipe;
  parcelsOf: (frame: Frame) => readonly (Parcel & { kind: 'frame' })[];
  delivered: (frame: Frame, size: number) => void;
  /** Called when this end will send and accept nothing any more. */
  ended: () => void;
}>;

const brokenCode = 1006;

export class SimulatedEnd implements FrameConnection {
  readonly peer: string;
  readonly closed: Promise<Readonly<{ code: number }>>;
  readonly #parts: EndParts;
  readonly #options: EndOptions;
  readonly #resolveClosed: (how: Readonly<{ code: number }>) => void;
  #state: 'open' | 'closing' | 'closed' | 'silent' = 'open';
  #unread: (Parcel & { kind: 'frame' })[] = [];
  /** The reader will get no more frames. */
  #isUnreadOver = false;
  #arrival: Deferred<void> | undefined;
  #drained: Deferred<void> | undefined;
  #heardMs: number;
  /**
   * Set until the peer answers after a pause of this host: when the pause ended, and when the peer
   * was last known to be there.
   */
  #resumed: Readonly<{ atMs: number; thereMs: number }> | undefined;

  constructor(parts: EndParts, options: EndOptions) {
    this.peer = parts.peer;
    this.#parts = parts;
    this.#options = options;
    this.#heardMs = parts.time.elapsedMs;
    const { promise, resolve } = deferred<Readonly<{ code: number }>>();
    this.closed = promise;
    this.#resolveClosed = resolve;
  }

  /** As in Liveness: the peer's presence is uncertain only after a pause of this end's own host. */
  silentSinceMs(): number | undefined {
    if (this.#resumed === undefined) return undefined;
    const silentMs = this.#parts.time.elapsedMs - this.#resumed.thereMs;
    return silentMs > this.#options.idleTimeoutMs ? this.#parts.now() - silentMs : undefined;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** When something last arrived, in VirtualTime. */
  get heardMs(): number {
    return this.#heardMs;
  }

  get bufferedBytes(): number {
    return this.#state === 'open' ? this.#parts.out().waitingBytes : 0;
  }

  send(frame: Frame): void {
    if (this.#state !== 'open') return;
    if (this.bufferedBytes > this.#options.bufferedBytesMax) return this.terminate();
    for (const parcel of this.#parts.parcelsOf(frame)) this.#parts.out().send(parcel);
  }

  drained(): Promise<void> {
    if (this.#state !== 'silent' && this.#hasDrained()) return Promise.resolve();
    this.#drained ??= deferred();
    return this.#drained.promise;
  }

  async *frames(): AsyncGenerator<Frame, void, undefined> {
    for (;;) {
      const parcel = await this.#take();
      if (parcel === undefined) return;
      this.#parts.into().release(parcel.size);
      yield this.#read(parcel);
    }
  }

  close(reason: ByeReason, message: string, retryAfterMs?: number): void {
    if (this.#state !== 'open') return;
    this.send({ kind: 'bye', reason, message, retryAfterMs });
    // The network has cut this end off, because the peer does not read.
    if (!this.isOpen) return;
    this.#parts.out().send({ kind: 'close', code: byeReasons[reason].code, size: 0 });
    this.#state = 'closing';
    this.#dropUnread();
    this.#settleDrained();
    this.#parts.time.after(this.#options.closeGraceMs, () => {
      if (this.#state === 'closing') this.#break();
    });
  }

  terminate(): void {
    if (this.#state === 'open' || this.#state === 'closing') this.#break();
  }

  /** The host has died. `isNoticed`: its system still resets the connection. */
  silence(isNoticed: boolean): void {
    if (this.#state === 'closed' || this.#state === 'silent') return;
    this.#state = 'silent';
    this.#parts.out().dropWaiting();
    if (isNoticed) this.#parts.out().send({ kind: 'reset', size: 0 });
    else this.#parts.out().vanish();
    this.#parts.into().vanish();
    this.#parts.ended();
  }

  /**
   * The host resumes after a pause. A message that arrives now may have arrived during the pause;
   * only the answer to a ping sent now proves that the peer is there.
   */
  resume(stoodSinceMs: number): void {
    if (this.#state !== 'open') return;
    const atMs = this.#parts.time.elapsedMs;
    this.#resumed = { atMs, thereMs: this.#resumed?.thereMs ?? stoodSinceMs };
    this.#parts.out().send({ kind: 'ping', askedMs: atMs, size: 0 });
  }

  arrive(parcel: Parcel): void {
    if (this.#state === 'closed' || this.#state === 'silent') return;
    this.#heardMs = this.#parts.time.elapsedMs;
    switch (parcel.kind) {
      case 'frame':
        return this.#receive(parcel);
      case 'ping':
        return this.#parts.out().send({ kind: 'pong', askedMs: parcel.askedMs, size: 0 });
      case 'pong':
        if (this.#resumed !== undefined && parcel.askedMs >= this.#resumed.atMs) this.#resumed = undefined;
        return;
      case 'close':
        this.#parts.out().dropWaiting();
        this.#parts.out().send({ kind: 'closed', code: parcel.code, size: 0 });
        return this.#finish(parcel.code);
      case 'closed':
        return this.#finish(parcel.code);
      case 'reset':
        this.#parts.out().dropWaiting();
        return this.#finish(brokenCode);
    }
  }

  /** A waiting message has started on its way. */
  moved(): void {
    if (this.#hasDrained()) this.#settleDrained();
  }

  #receive(parcel: Parcel & { kind: 'frame' }): void {
    this.#parts.line.count(parcel.frame.kind, parcel.size);
    if (this.#isUnreadOver) return this.#parts.into().release(parcel.size);
    this.#parts.delivered(parcel.frame, parcel.size);
    this.#unread.push(parcel);
    this.#wake();
  }

  async #take(): Promise<(Parcel & { kind: 'frame' }) | undefined> {
    for (;;) {
      if (this.#state !== 'silent') {
        const parcel = this.#unread.shift();
        if (parcel !== undefined) return parcel;
        if (this.#isUnreadOver) return undefined;
      }
      this.#arrival ??= deferred();
      await this.#arrival.promise;
    }
  }

  #read({ frame, bytes }: Parcel & { kind: 'frame' }): Frame {
    if (bytes === undefined) return frame;
    try {
      return readFrame(bytes);
    } catch (error) {
      if (error instanceof BadFrame) this.#dropUnread();
      throw error;
    }
  }

  #break(): void {
    this.#parts.out().dropWaiting();
    this.#parts.out().send({ kind: 'reset', size: 0 });
    this.#finish(brokenCode);
  }

  #finish(code: number): void {
    this.#state = 'closed';
    this.#isUnreadOver = true;
    this.#wake();
    this.#settleDrained();
    this.#resolveClosed({ code });
    this.#parts.ended();
  }

  #dropUnread(): void {
    const bytes = this.#unread.reduce((sum, { size }) => sum + size, 0);
    this.#unread = [];
    this.#isUnreadOver = true;
    this.#wake();
    if (bytes > 0) this.#parts.into().release(bytes);
  }

  #hasDrained(): boolean {
    return this.#state !== 'open' || this.bufferedBytes <= this.#options.bufferedBytesLow;
  }

  #wake(): void {
    this.#arrival?.resolve();
    this.#arrival = undefined;
  }

  #settleDrained(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }
}
