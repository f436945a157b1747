/**
 * One direction between two hosts: how long it takes, whether anything arrives, and what has arrived. Shared by all connections
 * that go this way.
 */
import type { Random } from '../crash/random.js';
import type { Frame } from '../../src/frames/frame.js';

export type LineSettings = Readonly<{
  delayMs: number;
  /** Up to so much more. What was sent first still arrives first. */
  jitterMs: number;
  /** So many of what is sent are lost and sent again by the network: later, never missing. */
  lossShare: number;
  /** How long the network takes to find that out. */
  retransmitMs: number;
  bytesPerMs: number;
  /** So much may be on the way or unread, of one connection; the rest waits at the sender. */
  windowBytes: number;
}>;

export const defaultLine: LineSettings = Object.freeze({
  delayMs: 10,
  jitterMs: 0,
  lossShare: 0,
  retransmitMs: 200,
  bytesPerMs: Infinity,
  windowBytes: 1024 * 1024,
});

export type Traffic = Readonly<{ frames: number; bytes: number }>;

const fractions = 2 ** 20;

export class NetworkLine {
  readonly from: string;
  readonly to: string;
  settings: LineSettings;
  /** Nothing arrives; what is on the way arrives when this ends. */
  isCut = false;
  /** While there is one nothing arrives either; each ends by itself. */
  readonly stalls = new Set<symbol>();
  readonly #random: Random;
  readonly #arrived = new Map<Frame['kind'], { frames: number; bytes: number }>();

  constructor({ from, to, random }: Readonly<{ from: string; to: string; random: Random }>, settings: LineSettings) {
    this.from = from;
    this.to = to;
    this.settings = settings;
    this.#random = random;
  }

  get isBlocked(): boolean {
    return this.isCut || this.stalls.size > 0;
  }

  /** How long the next message takes, without the time for its bytes. */
  drawDelayMs(): number {
    const { delayMs, jitterMs, lossShare, retransmitMs } = this.settings;
    const jitter = jitterMs === 0 ? 0 : (jitterMs * this.#random.below(fractions)) / fractions;
    return delayMs + jitter + (lossShare > 0 && this.#random.chance(lossShare) ? retransmitMs : 0);
  }

  count(kind: Frame['kind'], bytes: number): void {
    const counted = this.#arrived.get(kind) ?? { frames: 0, bytes: 0 };
    counted.frames += 1;
    counted.bytes += bytes;
    this.#arrived.set(kind, counted);
  }

  /** What arrived since the beginning, of all connections, by the kind of the frame. Pings and what TLS adds are not in it. */
  get traffic(): ReadonlyMap<Frame['kind'], Traffic> {
    return this.#arrived;
  }
}
