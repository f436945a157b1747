/**
 * Counts the slices that a peer has named and that are kept for it, and the total length of their
 * names. Without the second bound, names of 253 characters in each part could take hundreds of
 * megabytes; the first bound alone is above any real shard.
 */
const countMax = 200_000;
const charactersMax = 48 * 1024 * 1024;

export class NamedSlices {
  #count = 0;
  #characters = 0;

  add(name: string): void {
    this.#count += 1;
    this.#characters += name.length;
  }

  delete(name: string): void {
    this.#count -= 1;
    this.#characters -= name.length;
  }

  /** Whether there is no room for another slice. */
  get isFull(): boolean {
    return this.#count >= countMax || this.#characters >= charactersMax;
  }

  /** Whether the bounds are exceeded. */
  get isBeyond(): boolean {
    return this.#count > countMax || this.#characters > charactersMax;
  }
}
