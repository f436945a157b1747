/**
 * One direction between two hosts, shared by all connections: its delay, whether anything arrives,
 * and how much has arrived.
 */
import type { Random } from '../support/crash/random.js';
import type { Frame } from '../../src/frames/frame.js';

export type LineSettings = Readonly<{
  delayMs: number;
  /**
   * Upper bound of the random delay that is added. Messages still arrive in the order of sending.
   */
  jitterMs: number;
  /**
   * The share of messages that the network loses and sends again. They arrive late, never not at
   * all.
   */
  lossShare: number;
  /** How long the network takes to notice a loss. */
  retransmitMs: number;
  bytesPerMs: number;
  /**
   * Upper bound of the bytes of one connection that are on the way or unread; the rest waits at the
   * sender.
   */
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
  /** While true, nothing arrives; what is on the way arrives when the cut ends. */
  isCut = false;
  /** While there is a stall, nothing arrives. Each stall ends by itself. */
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

  /** The delay of the next message, without the time for its bytes. */
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

  /** What has arrived on all connections, by kind of frame, without pings and TLS. */
  get traffic(): ReadonlyMap<Frame['kind'], Traffic> {
    return this.#arrived;
  }
}
