/**
 * The first `max` keys of several sorted runs of keys. No run is read further than needed.
 *
 *   run 1   a c e g i k …
 *   run 2   b c d ┊              first 4: a b c d; from then on, no run is read beyond d
 *
 * Invariant: the instance has all keys up to `last` of every run that was added.
 */
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';

/** A key and the revision of its object; undefined if that cannot be found. */
export type KeyAt = Readonly<{ key: Key; revision: Revision | undefined }>;

export class FirstKeys {
  readonly #order: (a: Key, b: Key) => number;
  readonly #max: number;
  #held: readonly KeyAt[] = [];
  #last: Key | undefined;

  constructor(order: (a: Key, b: Key) => number, max: number) {
    this.#order = order;
    this.#max = max;
  }

  /** The key up to which runs must be read; undefined if to their end. */
  get last(): Key | undefined {
    return this.#last;
  }

  /**
   * `last`: the run continues behind this key; undefined if `run` has all keys up to `this.last`.
   */
  add(run: readonly KeyAt[], last: Key | undefined): void {
    this.#held = this.#held.length === 0 ? run : [...this.#held, ...run];
    if (last !== undefined && (this.#last === undefined || this.#order(last, this.#last) < 0)) this.#last = last;
    if (this.#held.length <= this.#max) return;
    const within = this.inOrder();
    this.#held = within.slice(0, this.#max);
    if (within.length > this.#max) this.#last = this.#held.at(-1)?.key;
  }

  /** Each key once, up to `last`. */
  inOrder(): readonly KeyAt[] {
    const last = this.#last;
    const within = last === undefined ? [...this.#held] : this.#held.filter(({ key }) => this.#order(key, last) <= 0);
    const sorted = within.toSorted((a, b) => this.#order(a.key, b.key));
    return sorted.filter(({ key }, i) => i === 0 || this.#order(key, sorted[i - 1]?.key ?? key) !== 0);
  }
}
