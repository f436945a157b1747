/**
 * Limits how many transactions are under way at once. The limit halves after a transaction that
 * etcd did not answer in time, and rises by one with each answer. So it soon falls to what the
 * network and the disks can handle in time.
 */
export class TransactionSlots {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  #limit: number;
  #acquired = 0;

  constructor(max: number) {
    this.#max = max;
    this.#limit = max;
  }

  /** Resolves when a slot is free. The caller returns the slot with `release`. */
  async acquire(): Promise<void> {
    if (this.#acquired < this.#limit) this.#acquired += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    this.#acquired -= 1;
    for (let next; this.#acquired < this.#limit && (next = this.#waiting.shift()) !== undefined; this.#acquired += 1) next();
  }

  answered(): void {
    this.#limit = Math.min(this.#max, this.#limit + 1);
  }

  unanswered(): void {
    this.#limit = Math.max(1, Math.floor(this.#limit / 2));
  }
}
