/**
 * How the receiving half of a link knows that it is up to date: once a second it asks the other end, which answers in order behind everything
 * that it held when it was asked.
 *
 *   ask(n) at T ──▶ other end: queue … changes … report(n) ──▶ everything before it is settled: what was there at T is here
 *
 * Only the clock of this end counts: neither a network that holds bytes back nor a clock elsewhere makes it look fresher than it is. One
 * question is open at a time: an end that is slow to answer is asked less often.
 */
import type { Clock } from '../domain/ports.js';

export type HeartbeatParts = Readonly<{ clock: Clock; send: (number: number) => void }>;

const intervalMs = 1_000;
/** An answer to an older question says nothing of now: two questions were due since. */
export const answerAgeMsMax = 3 * intervalMs;

export class Heartbeat {
  readonly #parts: HeartbeatParts;
  #number = 0;
  #askedMs = 0;
  #isAnswered = true;
  #cancel = (): void => {};

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
  }

  /** From then on. */
  ask(): void {
    this.#number += 1;
    this.#askedMs = this.#parts.clock.now();
    this.#isAnswered = false;
    this.#parts.send(this.#number);
  }

  /** When the answered question was asked; undefined if it never was, or was answered before. */
  answered(number: number): number | undefined {
    if (number !== this.#number || this.#isAnswered) return undefined;
    this.#isAnswered = true;
    const { clock } = this.#parts;
    this.#cancel = clock.after(Math.max(0, this.#askedMs + intervalMs - clock.now()), () => this.ask());
    return this.#askedMs;
  }

  /** Asks no more. */
  close(): void {
    this.#isAnswered = true;
    this.#cancel();
  }
}
