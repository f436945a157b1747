/**
 * Detects a peer that disappeared silently. The peer is pinged every `pingIntervalMs`, and counts
 * as dead if nothing arrives within `pongTimeoutMs` of a ping. So detection takes at most the sum
 * of both.
 *
 *  ping ── anything arrives ── pingIntervalMs ── ping ── pongTimeoutMs ── dead
 *
 * While this process does not read from the peer, the answer may wait unread, so the timeout starts
 * again. The timeout also starts again after a pause of this process (docs/guarantees.md, F7),
 * which a late timer reveals. Data read after a pause may have been sent before the pause. So the
 * peer's presence is unknown until it answers a ping sent after the pause (`silentSinceMs`).
 */
import type { Clock } from '../ports.js';

export type LivenessPeer = Readonly<{
  ping: () => void;
  /** Whether this process reads from the peer. */
  listening: () => boolean;
  onDead: () => void;
}>;

export type LivenessOptions = Readonly<{ pingIntervalMs: number; pongTimeoutMs: number }>;

export class Liveness {
  readonly #clock: Clock;
  readonly #peer: LivenessPeer;
  readonly #options: LivenessOptions;
  #isPinged = false;
  #seenMs: number;
  /** When a pause ended; undefined once the peer has answered a ping sent after the pause. */
  #resumedMs: number | undefined;
  #dueMs = 0;
  #cancel: () => void;

  constructor(clock: Clock, peer: LivenessPeer, options: LivenessOptions) {
    this.#clock = clock;
    this.#peer = peer;
    this.#options = options;
    this.#seenMs = clock.now();
    this.#cancel = this.#pingLater();
  }

  /**
   * Records that something arrived from the peer. `askedMs`: for a pong, the time of its ping. The
   * peer may send a wrong time, so a time in the future does not count.
   */
  received(askedMs = 0): void {
    this.#detectPause();
    const nowMs = this.#clock.now();
    if (askedMs <= nowMs && askedMs >= (this.#resumedMs ?? 0)) this.#resumedMs = undefined;
    if (this.#resumedMs === undefined) this.#seenMs = nowMs;
    if (!this.#isPinged) return;
    this.#isPinged = false;
    this.#cancel();
    this.#cancel = this.#pingLater();
  }

  /**
   * Undefined while the peer counts as present. Otherwise when the peer was last seen: it has not
   * answered since a pause of this process, and has been silent for longer than a live peer can be.
   */
  silentSinceMs(): number | undefined {
    this.#detectPause();
    const { pingIntervalMs, pongTimeoutMs } = this.#options;
    if (this.#resumedMs === undefined || !this.#peer.listening()) return undefined;
    return this.#clock.now() - this.#seenMs > pingIntervalMs + 2 * pongTimeoutMs ? this.#seenMs : undefined;
  }

  stop(): void {
    this.#isPinged = false;
    this.#dueMs = Infinity;
    this.#cancel();
  }

  #pingLater(): () => void {
    return this.#later(this.#options.pingIntervalMs, () => {
      this.#isPinged = true;
      this.#cancel = this.#checkLater();
      this.#peer.ping();
    });
  }

  #checkLater(): () => void {
    const { pongTimeoutMs } = this.#options;
    return this.#later(pongTimeoutMs, () => {
      const isFresh = this.#clock.now() - (this.#resumedMs ?? 0) < pongTimeoutMs;
      if (this.#peer.listening() && !isFresh) return this.#peer.onDead();
      this.#cancel = this.#checkLater();
    });
  }

  #later(delayMs: number, task: () => void): () => void {
    this.#dueMs = this.#clock.now() + delayMs;
    return this.#clock.after(delayMs, () => {
      this.#detectPause();
      task();
    });
  }

  /** Detects a pause of this process, and pings the peer at once after one. */
  #detectPause(): void {
    const nowMs = this.#clock.now();
    if (nowMs - this.#dueMs <= this.#options.pongTimeoutMs) return;
    this.#dueMs = Infinity;
    this.#resumedMs = nowMs;
    this.#peer.ping();
  }
}
