/**
 * How many transactions may be under way at once: half as many after one that etcd has not answered in time, one more with each that it has. So where all
 * together take longer than each may, there are soon as few as the network and the disks can take.
 */
export class TransactionSlots {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  #limit: number;
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
    this.#limit = max;
  }

  /** Resolves when it is its turn; whoever took one gives it back with `give`. */
  async take(): Promise<void> {
    if (this.#taken < this.#limit) this.#taken += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    this.#taken -= 1;
    for (let next; this.#taken < this.#limit && (next = this.#waiting.shift()) !== undefined; this.#taken += 1) next();
  }

  answered(): void {
    this.#limit = Math.min(this.#max, this.#limit + 1);
  }

  unanswered(): void {
    this.#limit = Math.max(1, Math.floor(this.#limit / 2));
  }
}
