/**
 * One direction of one connection. A message waits, is on its way, arrives in order, and is read.
 *
 *   send ──▶ waiting ──(window)──▶ flying ──(delay)──▶ landed ──(line open)──▶ arrive
 *        ──▶ unread ──▶ read: window
 *
 * W1 Order: messages arrive in the order of sending, whatever the delay of each.
 * W2 At most windowBytes, or one message, are flying, landed or unread; a close is not counted. The
 * sender bounds the rest, `waitingBytes`.
 */
import type { Frame } from '../../src/frames/frame.js';
import type { NetworkLine } from './network-line.js';
import type { VirtualTime } from './virtual-time.js';

/** `bytes`: the encoded frame, if frames cross as bytes. */
export type Parcel =
  | Readonly<{ kind: 'frame'; frame: Frame; bytes: Uint8Array | undefined; size: number }>
  /** A ping that a host sends when it resumes after a pause, and its answer. */
  | Readonly<{ kind: 'ping' | 'pong'; askedMs: number; size: 0 }>
  | Readonly<{ kind: 'close'; code: number; size: 0 }>
  | Readonly<{ kind: 'closed'; code: number; size: 0 }>
  | Readonly<{ kind: 'reset'; size: 0 }>;

export type PipeParts = Readonly<{
  time: VirtualTime;
  line: NetworkLine;
  /** Whether the host at the far end is paused and reads nothing. */
  isDeaf: () => boolean;
  arrive: (parcel: Parcel) => void;
  /** Called when a waiting message starts on its way. */
  moved: () => void;
}>;

export class NetworkPipe {
  readonly #parts: PipeParts;
  #waiting: Parcel[] = [];
  #waitingBytes = 0;
  readonly #flying: Parcel[] = [];
  /** How many of the flying messages would have arrived by now. */
  #landed = 0;
  /** Bytes flying, landed or unread. */
  #windowBytes = 0;
  #lastArrivalMs = 0;
  /** Until when bytes of this connection keep the line busy. */
  #busyUntilMs = 0;
  #isGone = false;

  constructor(parts: PipeParts) {
    this.#parts = parts;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  send(parcel: Parcel): void {
    this.#waiting.push(parcel);
    this.#waitingBytes += parcel.size;
    this.#depart();
  }

  /** Drops what waits; what is on its way still arrives. */
  dropWaiting(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  /** Nothing arrives from now on. */
  vanish(): void {
    this.#isGone = true;
  }

  /** The reader has read so many bytes, or never will. */
  release(bytes: number): void {
    this.#windowBytes -= bytes;
    this.#depart();
  }

  /** The line is open again, or the far end has resumed. */
  resume(): void {
    if (this.#landed > 0) this.#parts.time.after(this.#parts.line.settings.delayMs, () => this.#arrive());
  }

  #depart(): void {
    const { time, line, moved } = this.#parts;
    let hasMoved = false;
    for (;;) {
      const parcel = this.#waiting[0];
      if (parcel === undefined) break;
      if (parcel.size > 0 && this.#windowBytes > 0 && this.#windowBytes + parcel.size > line.settings.windowBytes) break;
      this.#waiting.shift();
      this.#waitingBytes -= parcel.size;
      this.#windowBytes += parcel.size;
      this.#flying.push(parcel);
      hasMoved = true;
      const nowMs = time.elapsedMs;
      this.#busyUntilMs = Math.max(this.#busyUntilMs, nowMs) + parcel.size / line.settings.bytesPerMs;
      this.#lastArrivalMs = Math.max(this.#lastArrivalMs, this.#busyUntilMs + line.drawDelayMs());
      time.after(this.#lastArrivalMs - nowMs, () => {
        this.#landed += 1;
        this.#arrive();
      });
    }
    if (hasMoved) moved();
  }

  #arrive(): void {
    while (this.#landed > 0 && !this.#isGone && !this.#parts.line.isBlocked && !this.#parts.isDeaf()) {
      const parcel = this.#flying.shift();
      if (parcel === undefined) throw new Error('a landed message was not flying');
      this.#landed -= 1;
      this.#parts.arrive(parcel);
    }
  }
}
