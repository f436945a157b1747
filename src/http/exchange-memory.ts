/**
 * The memory of one exchange, from its connection's budget. At its end the exchange releases the
 * memory and ends every wait. A wait that gets memory resolves in a later turn. A closing
 * connection ends its exchanges one by one, and each passes its memory to the next. By that turn
 * the next has ended, and the wait fails.
 */
import type { Budget } from '../domain/base/budget.js';
import type { MemoryReservation } from '../domain/base/memory-reservation.js';

export class ExchangeMemory implements MemoryReservation {
  readonly #budget: Budget;
  readonly #turn: () => Promise<void>;
  readonly #waits = new Set<() => void>();
  #bytes = 0;
  #isClosed = false;

  constructor(budget: Budget, turn: () => Promise<void>) {
    this.#budget = budget;
    this.#turn = turn;
  }

  get isAwaited(): boolean {
    return this.#waits.size > 0;
  }

  tryReserve(bytes: number): boolean {
    if (this.#isClosed || !this.#budget.tryReserve(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  reserve(bytes: number): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#isClosed) return resolve(false);
      const leave = (): void => {
        giveUp();
        resolve(false);
      };
      this.#waits.add(leave);
      let hasWaited = false;
      const giveUp = this.#budget.reserve(bytes, () => {
        this.#waits.delete(leave);
        this.#bytes += bytes;
        if (hasWaited) void this.#turn().then(() => resolve(!this.#isClosed));
        else resolve(true);
      });
      hasWaited = true;
    });
  }

  add(bytes: number): void {
    if (this.#isClosed) return;
    this.#budget.add(bytes);
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    const given = Math.min(bytes, this.#bytes);
    if (given === 0) return;
    this.#bytes -= given;
    this.#budget.release(given);
  }

  reserveExactly(bytes: number): void {
    const surplus = this.#bytes - bytes;
    if (surplus > 0) this.release(surplus);
    else this.add(-surplus);
  }

  clear(): void {
    this.release(this.#bytes);
  }

  close(): void {
    this.#isClosed = true;
    for (const leave of this.#waits) leave();
    this.#waits.clear();
    this.clear();
  }
}
