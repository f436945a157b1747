/**
 * Measures how current the receiving half of a link is. Once a second, this end sends a heartbeat.
 * The other end sends its report after everything that it held when the heartbeat arrived.
 *
 *   send(n) at T ──▶ other end: queue … changes … report(n) ──▶ all before the report is decided:
 *                                                               what was there at T is here
 *
 * Only the clock of this end counts. So neither a slow network nor a wrong clock elsewhere makes
 * this end look fresher than it is. At most one heartbeat is unanswered, so a slow end gets fewer
 * of them.
 */
import type { Clock } from '../../domain/ports.js';

export type HeartbeatParts = Readonly<{ clock: Clock; send: (number: number) => void }>;

const intervalMs = 1_000;
/**
 * A link does not count as up once its last answered heartbeat is older than this. Two more
 * heartbeats were due since then.
 */
export const answerAgeMsMax = 3 * intervalMs;

export class Heartbeat {
  readonly #parts: HeartbeatParts;
  #number = 0;
  /** When the last heartbeat was sent; undefined once it is answered. */
  #askedMs: number | undefined;
  #cancel = (): void => {};

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
  }

  /** Sends a heartbeat now, and another after each answer. */
  send(): void {
    this.#number += 1;
    this.#askedMs = this.#parts.clock.now();
    this.#parts.send(this.#number);
  }

  /**
   * Returns when the heartbeat of that number was sent; undefined if it is not the last one, or was
   * answered already.
   */
  answered(number: number): number | undefined {
    const askedMs = this.#askedMs;
    if (number !== this.#number || askedMs === undefined) return undefined;
    this.#askedMs = undefined;
    const { clock } = this.#parts;
    this.#cancel = clock.after(Math.max(0, askedMs + intervalMs - clock.now()), () => this.send());
    return askedMs;
  }

  close(): void {
    this.#askedMs = undefined;
    this.#cancel();
  }
}
