/** A queue without duplicates, in order of arrival. */
export class Turns<T> {
  readonly #waiting = new Set<T>();
  #line: T[] = [];
  /** The index of the first waiting member in `#line`. */
  #head = 0;

  get first(): T | undefined {
    return this.#line[this.#head];
  }

  /** Joins at the end, unless the member is already waiting. */
  add(member: T): void {
    if (this.#waiting.has(member)) return;
    this.#waiting.add(member);
    this.#line.push(member);
  }

  /** Removes the first member. */
  next(): void {
    const { first } = this;
    if (first === undefined) return;
    this.#waiting.delete(first);
    this.#head += 1;
    if (this.#head * 2 < this.#line.length) return;
    this.#line = this.#line.slice(this.#head);
    this.#head = 0;
  }
}
