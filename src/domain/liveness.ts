/**
 * Finds out a peer that is gone without a word: it is asked every `pingIntervalMs`, and dead when nothing came for
 * `pongTimeoutMs` behind that. So it is noticed after both, at the latest.
 *
 *   ask ── anything heard ── pingIntervalMs ── ask ── pongTimeoutMs ── dead
 *
 * While we do not read, its answer may lie unread: then it gets the time once more. A process that was paused asks late, and first reads what came
 * before: only an answer that says when it was asked for tells that the peer was there then (`silentSinceMs`, F7).
 */
import type { Clock } from '../domain/ports.js';

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
  #cancel: () => void;

  constructor(clock: Clock, peer: LivenessPeer, options: LivenessOptions) {
    this.#clock = clock;
    this.#peer = peer;
    this.#options = options;
    this.#thereMs = clock.now();
    this.#cancel = this.#askLater();
  }

  /** Something came from the peer; it was there at `askedMs`, if it says so. It may say what it likes: a time to come is none at which it was asked. */
  heard(askedMs = this.#thereMs): void {
    if (askedMs <= this.#clock.now()) this.#thereMs = Math.max(this.#thereMs, askedMs);
    if (!this.#asked) return;
    this.#asked = false;
    this.#cancel();
    this.#cancel = this.#askLater();
  }

  /** When it was last there for sure, if that is longer ago than between two answers in time; undefined while it counts as there. */
  silentSinceMs(): number | undefined {
    const { pingIntervalMs, pongTimeoutMs } = this.#options;
    const isSilent = this.#peer.listening() && this.#clock.now() - this.#thereMs > pingIntervalMs + 2 * pongTimeoutMs;
    return isSilent ? this.#thereMs : undefined;
  }

  stop(): void {
    this.#asked = false;
    this.#cancel();
  }

  #askLater(): () => void {
    return this.#clock.after(this.#options.pingIntervalMs, () => {
      this.#asked = true;
      this.#cancel = this.#judgeLater();
      this.#peer.ask();
    });
  }

  #judgeLater(): () => void {
    return this.#clock.after(this.#options.pongTimeoutMs, () => {
      if (this.#peer.listening()) return this.#peer.dead();
      this.#cancel = this.#judgeLater();
    });
  }
}
