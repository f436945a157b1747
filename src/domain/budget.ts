/**
 * A bound that many share, as a tree: what is taken from a budget is also taken from every budget above it.
 *
 *   everybody ─▶ everybody but masters ─▶ one caller ─▶ one of its connections
 *
 * A budget holds at most `max`. Something larger than `max` fits only while the budget is empty, so that no bound can keep a single
 * allowed body out for good. Each full budget serves those who wait first come, first served: nobody overtakes a waiter, however little
 * they take. Only `tryTake` and `add`, which cannot wait, go past them.
 */
export class Budget {
  readonly #max: number;
  /** This one and those above it, upwards. */
  readonly #path: readonly Budget[];
  /** Those that wait for this budget now, in the order they came. */
  readonly #waiting = new Set<Waiting>();
  #used = 0;

  constructor(max: number, above?: Budget) {
    this.#max = max;
    this.#path = above === undefined ? [this] : [this, ...above.#path];
  }

  get used(): number {
    return this.#used;
  }

  /** False, and nothing taken, when this budget or one above it is full. */
  tryTake(amount: number): boolean {
    if (this.#path.some((budget) => budget.#isFullFor(amount))) return false;
    this.add(amount);
    return true;
  }

  /** Takes even beyond the bound: for what is already in memory. */
  add(amount: number): void {
    for (const budget of this.#path) budget.#used += amount;
  }

  /** Calls `go` with the amount taken, at once or when there is room. The result gives up the wait. */
  take(amount: number, go: () => void): () => void {
    const full = this.#heldUpBy(amount, 0);
    if (full === undefined) {
      this.add(amount);
      go();
      return () => {};
    }
    const waiting: Waiting = { budget: this, amount, at: full, go };
    full.#waiting.add(waiting);
    return () => {
      if (waiting.at.#waiting.delete(waiting)) waiting.at.#wake();
    };
  }

  give(amount: number): void {
    for (const budget of this.#path) budget.#used -= amount;
    for (const budget of this.#path) budget.#wake();
  }

  /** Serves those who wait here. One that another budget of theirs is too full for goes on waiting there. */
  #wake(): void {
    for (const waiting of this.#waiting) {
      const { budget, amount } = waiting;
      const full = budget.#heldUpBy(amount, budget.#path.indexOf(this) + 1);
      if (full === this) return;
      this.#waiting.delete(waiting);
      if (full === undefined) {
        waiting.budget.add(waiting.amount);
        waiting.go();
      } else {
        waiting.at = full;
        full.#waiting.add(waiting);
      }
    }
  }

  /** The lowest budget on the way up without room for the amount; from the place `queuedFrom` on also one that others wait for. */
  #heldUpBy(amount: number, queuedFrom: number): Budget | undefined {
    return this.#path.find((budget, i) => budget.#isFullFor(amount) || (i >= queuedFrom && budget.#waiting.size > 0));
  }

  #isFullFor(amount: number): boolean {
    return this.#used > 0 && this.#used + amount > this.#max;
  }
}

type Waiting = { readonly budget: Budget; readonly amount: number; at: Budget; readonly go: () => void };
