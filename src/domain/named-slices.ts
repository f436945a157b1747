/**
 * How many slices one peer has named, of those that are kept for it, and how long their names are together. Names of 253 characters in each part would otherwise
 * make hundreds of megabytes of a number that is none of a real shard's.
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

  /** Whether there is room for none more. */
  get isFull(): boolean {
    return this.#count >= countMax || this.#characters >= charactersMax;
  }

  /** Whether there are more than there may be. */
  get isBeyond(): boolean {
    return this.#count > countMax || this.#characters > charactersMax;
  }
}
