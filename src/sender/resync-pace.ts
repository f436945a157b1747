/**
 * How long a repeated sync of a slice waits. Each sync costs the source, the network and the cache
 * a read of everything, so repeated failures must not cause syncs at full speed.
 *
 * E1 A wait is between half and all of a bound that doubles with each sync, up to a minute. The
 *    first resync that a cache asks for starts at once; one after a failure always waits.
 * E2 Only a sync that completed and then lasted as long as the longest wait resets the count.
 */
import type { Clock } from '../domain/ports.js';
import { backoffMs, type BackoffBounds } from './reconnect.js';

const bounds: BackoffBounds = { backoffBaseMs: 1_000, backoffMaxMs: 60_000 };

export class ResyncPace {
  readonly #clock: Clock;
  readonly #random: () => number;
  #inARow = 0;
  /** When the last sync completed; undefined while one is under way. */
  #syncedMs: number | undefined;

  constructor({ clock, random }: Readonly<{ clock: Clock; random: () => number }>) {
    this.#clock = clock;
    this.#random = random;
  }

  synced(): void {
    this.#syncedMs = this.#clock.now();
  }

  /** The wait before a sync that the cache asks for, although the last one did not fail. */
  wantedMs(): number {
    this.#begin();
    return this.#inARow === 1 ? 0 : this.#waitMs(this.#inARow - 1);
  }

  /** The wait before a sync that replaces a failed or lost one. */
  failedMs(): number {
    this.#begin();
    if (this.#inARow === 1) this.#inARow += 1;
    return this.#waitMs(this.#inARow - 1);
  }

  #begin(): void {
    const held = this.#syncedMs !== undefined && this.#clock.now() - this.#syncedMs >= bounds.backoffMaxMs;
    this.#inARow = held ? 1 : this.#inARow + 1;
    this.#syncedMs = undefined;
  }

  #waitMs(failures: number): number {
    return backoffMs(failures, () => (1 + this.#random()) / 2, bounds);
  }
}
