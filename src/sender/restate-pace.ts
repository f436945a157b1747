/**
 * How long a statement has to wait that is to follow another of the same slice. Each costs its source, the network and the cache
 * a reading of everything, so what goes wrong again and again must not bring them about at full speed.
 *
 * E1 A wait is half to whole of a bound that doubles with each statement, up to a minute; what is merely asked for
 *    again comes at once the first time, what failed waits from the first time on.
 * E2 Only a statement that was whole, and held for as long as the longest wait, makes the next one the first.
 */
import type { Clock } from '../domain/ports.js';
import { backoffMs, type BackoffBounds } from './reconnect.js';

const bounds: BackoffBounds = { backoffBaseMs: 1_000, backoffMaxMs: 60_000 };

export class RestatePace {
  readonly #clock: Clock;
  readonly #random: () => number;
  #inARow = 0;
  /** When the last statement was whole; undefined while it is not. */
  #statedMs: number | undefined;

  constructor({ clock, random }: Readonly<{ clock: Clock; random: () => number }>) {
    this.#clock = clock;
    this.#random = random;
  }

  /** The statement is whole, and was taken. */
  stated(): void {
    this.#statedMs = this.#clock.now();
  }

  /** The wait of a statement that is asked for while the last one was no failure. */
  wantedMs(): number {
    this.#begin();
    return this.#inARow === 1 ? 0 : this.#waitMs(this.#inARow - 1);
  }

  /** The wait of a statement that follows one that failed, or was lost. */
  failedMs(): number {
    this.#begin();
    if (this.#inARow === 1) this.#inARow += 1;
    return this.#waitMs(this.#inARow - 1);
  }

  #begin(): void {
    const held = this.#statedMs !== undefined && this.#clock.now() - this.#statedMs >= bounds.backoffMaxMs;
    this.#inARow = held ? 1 : this.#inARow + 1;
    this.#statedMs = undefined;
  }

  #waitMs(failures: number): number {
    return backoffMs(failures, () => (1 + this.#random()) / 2, bounds);
  }
}
