/**
 * Detects a peer that is gone silently: it is asked every `pingIntervalMs`, and counts as dead when nothing comes for
 * `pongTimeoutMs` after that. So this takes both times at most.
 *
 *   ask ── anything heard ── pingIntervalMs ── ask ── pongTimeoutMs ── dead
 *
 * While we do not read, its answer may lie unread, so it gets the time once more. So it does after a pause of this process (F7), which a late
 * timer reveals. What is read then came before or during the pause. Until the peer answers what it was asked after the pause, nobody
 * knows whether it is there (`silentSinceMs`).
 */
import type { Clock } from './ports.js';

export type LivenessPeer = Readonly<{
  ask: () => void;
  /** Whether what the peer sends is being read. */
  listening: () => boolean;
  dead: () => void;
}>;

export type LivenessOptions = Readonly<{ pingIntervalMs: number; pongTimeoutMs: number }>;

export class Liveness {
  readonly #clock: Clock;
  readonly #peer: LivenessPeer;
  readonly #options: LivenessOptions;
  #asked = false;
  #thereMs: number;
  /** The end of a pause after which it has not answered yet. */
  #resumedMs: number | undefined;
  #dueMs = 0;
  #cancel: () => void;

  constructor(clock: Clock, peer: LivenessPeer, options: LivenessOptions) {
    this.#clock = clock;
    this.#peer = peer;
    this.#options = options;
    this.#thereMs = clock.now();
    this.#cancel = this.#askLater();
  }

  /** Something came from the peer. An answer carries the time it was asked, or any time the peer likes: a future one does not count. */
  heard(askedMs = 0): void {
    this.#notePause();
    const nowMs = this.#clock.now();
    if (askedMs <= nowMs && askedMs >= (this.#resumedMs ?? 0)) this.#resumedMs = undefined;
    if (this.#resumedMs === undefined) this.#thereMs = nowMs;
    if (!this.#asked) return;
    this.#asked = false;
    this.#cancel();
    this.#cancel = this.#askLater();
  }

  /** When it was last known to be there, if that is longer ago than between two answers in time; undefined while it counts as there. */
  silentSinceMs(): number | undefined {
    this.#notePause();
    const { pingIntervalMs, pongTimeoutMs } = this.#options;
    if (this.#resumedMs === undefined || !this.#peer.listening()) return undefined;
    return this.#clock.now() - this.#thereMs > pingIntervalMs + 2 * pongTimeoutMs ? this.#thereMs : undefined;
  }

  stop(): void {
    this.#asked = false;
    this.#dueMs = Infinity;
    this.#cancel();
  }

  #askLater(): () => void {
    return this.#later(this.#options.pingIntervalMs, () => {
      this.#asked = true;
      this.#cancel = this.#judgeLater();
      this.#peer.ask();
    });
  }

  #judgeLater(): () => void {
    const { pongTimeoutMs } = this.#options;
    return this.#later(pongTimeoutMs, () => {
      const isFresh = this.#clock.now() - (this.#resumedMs ?? 0) < pongTimeoutMs;
      if (this.#peer.listening() && !isFresh) return this.#peer.dead();
      this.#cancel = this.#judgeLater();
    });
  }

  #later(delayMs: number, task: () => void): () => void {
    this.#dueMs = this.#clock.now() + delayMs;
    return this.#clock.after(delayMs, () => {
      this.#notePause();
      task();
    });
  }

  /** If there was a pause, the peer is asked at once. */
  #notePause(): void {
    const nowMs = this.#clock.now();
    if (nowMs - this.#dueMs <= this.#options.pongTimeoutMs) return;
    this.#dueMs = Infinity;
    this.#resumedMs = nowMs;
    this.#peer.ask();
  }
}
