/**
 * Counts the slices that a peer has named and that are kept for it, and the total length of their
 * names. The count alone does not bound memory: it is above that of any real shard, and names of
 * 253 characters in each part could take hundreds of megabytes.
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
