/**
 * The first keys after a position, out of several runs of keys that are each in order. No run is read further than the
 * others need.
 *
 *   run 1   a c e g i k …
 *   run 2   b c d ┊              first 4: a b c d; from now on nobody reads beyond d
 *
 * Invariant: of every run that was added, all keys up to `last` are here.
 */
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';

/** A key and the revision it held; undefined when that cannot be found. */
export type Held = Readonly<{ key: Key; revision: Revision | undefined }>;

export class FirstKeys {
  readonly #order: (a: Key, b: Key) => number;
  readonly #max: number;
  #held: readonly Held[] = [];
  #last: Key | undefined;

  constructor(order: (a: Key, b: Key) => number, max: number) {
    this.#order = order;
    this.#max = max;
  }

  /** Up to where to read; undefined: to the end. */
  get last(): Key | undefined {
    return this.#last;
  }

  /** `last`: the run goes on behind that; undefined when this is all of it up to `this.last`. */
  add(run: readonly Held[], last: Key | undefined): void {
    this.#held = this.#held.length === 0 ? run : [...this.#held, ...run];
    if (last !== undefined && (this.#last === undefined || this.#order(last, this.#last) < 0)) this.#last = last;
    if (this.#held.length <= this.#max) return;
    const within = this.inOrder();
    this.#held = within.slice(0, this.#max);
    if (within.length > this.#max) this.#last = this.#held.at(-1)?.key;
  }

  /** Each key once, up to `last`. */
  inOrder(): readonly Held[] {
    const last = this.#last;
    const within = last === undefined ? [...this.#held] : this.#held.filter(({ key }) => this.#order(key, last) <= 0);
    const sorted = within.toSorted((a, b) => this.#order(a.key, b.key));
    return sorted.filter(({ key }, i) => i === 0 || this.#order(key, sorted[i - 1]?.key ?? key) !== 0);
  }
}
