/**
 * Counts the slices that are kept for a peer because the peer named them, and the total length of
 * their names. No real shard has `countMax` slices. But so many names of 253 characters a part
 * would take hundreds of megabytes, so their length is bounded too.
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

  get isFull(): boolean {
    return this.#count >= countMax || this.#characters >= charactersMax;
  }

  get isBeyond(): boolean {
    return this.#count > countMax || this.#characters > charactersMax;
  }
}
