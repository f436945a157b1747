/**
 * How long a sync has to wait that follows another of the same slice. Each costs its source, the network and the cache
 * a reading of everything, so what fails again and again must not cause syncs at full speed.
 *
 * E1 A wait is half to whole of a bound that doubles with each sync, up to a minute. A resync that is merely asked for
 *    comes at once the first time; one after a failure waits from the first time on.
 * E2 Only a sync that completed, and held for as long as the longest wait, makes the next one the first.
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

  /** The sync is complete, and was accepted. */
  synced(): void {
    this.#syncedMs = this.#clock.now();
  }

  /** The wait of a sync that somebody asks for, though the last one did not fail. */
  wantedMs(): number {
    this.#begin();
    return this.#inARow === 1 ? 0 : this.#waitMs(this.#inARow - 1);
  }

  /** The wait of a sync that follows one that failed, or was lost. */
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
