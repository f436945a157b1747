/**
 * A bound that many users share, as a tree: an amount taken from a budget is also taken from every
 * budget above it.
 *
 *  everybody ─▶ everybody but masters ─▶ one caller ─▶ one of its connections
 *
 * A budget holds at most `max`. A larger amount, which would otherwise wait forever, fits into an
 * empty budget. Each full budget serves its waiters first come, first served: a small request does
 * not overtake a large one. `tryReserve` and `add` cannot wait, and ignore waiters.
 */
export class Budget {
  readonly #max: number;
  readonly #path: readonly Budget[];
  /** The calls of `reserve` that wait for room in this budget, in order of arrival. */
  readonly #waiting = new Set<Waiting>();
  #used = 0;

  constructor(max: number, above?: Budget) {
    this.#max = max;
    this.#path = above === undefined ? [this] : [this, ...above.#path];
  }

  get used(): number {
    return this.#used;
  }

  /** Returns false, and takes nothing, if this budget or one above it has no room. */
  tryReserve(amount: number): boolean {
    if (this.#path.some((budget) => budget.#isFullFor(amount))) return false;
    this.add(amount);
    return true;
  }

  /** Takes the amount even beyond the bound, because its bytes are already in memory. */
  add(amount: number): void {
    for (const budget of this.#path) budget.#used += amount;
  }

  /**
   * Takes the amount, at once or when there is room, and then calls `onReserved`. The returned
   * function cancels the wait.
   */
  reserve(amount: number, onReserved: () => void): () => void {
    const full = this.#firstFullFor(amount, 0);
    if (full === undefined) {
      this.add(amount);
      onReserved();
      return () => {};
    }
    const waiting: Waiting = { budget: this, amount, at: full, onReserved };
    full.#waiting.add(waiting);
    return () => {
      if (waiting.at.#waiting.delete(waiting)) waiting.at.#wake();
    };
  }

  release(amount: number): void {
    for (const budget of this.#path) budget.#used -= amount;
    for (const budget of this.#path) budget.#wake();
  }

  /**
   * Serves the waiters of this budget in order. A waiter whose next budget upwards is full moves on
   * and waits there.
   */
  #wake(): void {
    for (const waiting of this.#waiting) {
      const { budget, amount } = waiting;
      const full = budget.#firstFullFor(amount, budget.#path.indexOf(this) + 1);
      if (full === this) return;
      this.#waiting.delete(waiting);
      if (full === undefined) {
        waiting.budget.add(waiting.amount);
        waiting.onReserved();
      } else {
        waiting.at = full;
        full.#waiting.add(waiting);
      }
    }
  }

  /**
   * The lowest budget on the path without room for the amount. From index `queuedFrom` upwards, a
   * budget that has waiters counts as full.
   */
  #firstFullFor(amount: number, queuedFrom: number): Budget | undefined {
    return this.#path.find((budget, i) => budget.#isFullFor(amount) || (i >= queuedFrom && budget.#waiting.size > 0));
  }

  #isFullFor(amount: number): boolean {
    return this.#used > 0 && this.#used + amount > this.#max;
  }
}

type Waiting = { readonly budget: Budget; readonly amount: number; at: Budget; readonly onReserved: () => void };
