/**
 * Measures how current the receiving half of a link is. Once a second, this end asks the other end.
 * The other end answers in order, behind everything that it held when the question arrived.
 *
 *   send(n) at T ──▶ other end: queue … changes … report(n) ──▶ all before the report is decided:
 *                                                               what was there at T is here
 *
 * Only the clock of this end counts. So neither a slow network nor a wrong clock elsewhere makes
 * this end look fresher than it is. Only one question is open at a time, so an end that answers
 * slowly is asked less often.
 */
import type { Clock } from '../../domain/ports.js';

export type HeartbeatParts = Readonly<{ clock: Clock; send: (number: number) => void }>;

const intervalMs = 1_000;
/**
 * A link does not count as up once its last answered question is older than this. Two more
 * questions were due since then.
 */
export const answerAgeMsMax = 3 * intervalMs;

export class Heartbeat {
  readonly #parts: HeartbeatParts;
  #number = 0;
  /** When the last question was asked; undefined once it is answered. */
  #askedMs: number | undefined;
  #cancel = (): void => {};

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
  }

  /** Asks now, and again after each answer. */
  send(): void {
    this.#number += 1;
    this.#askedMs = this.#parts.clock.now();
    this.#parts.send(this.#number);
  }

  /**
   * Returns when the question of that number was asked. Returns undefined if that is not the last
   * question, or was answered already.
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
