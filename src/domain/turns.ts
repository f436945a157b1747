/** Those who wait for their turns, each once, in the order in which they came. */
export class Turns<T> {
  readonly #waiting = new Set<T>();
  #line: T[] = [];
  /** Where in the line the first is: those before it have had their turns. */
  #head = 0;

  get first(): T | undefined {
    return this.#line[this.#head];
  }

  /** Joins at the end, unless it waits already. */
  add(member: T): void {
    if (this.#waiting.has(member)) return;
    this.#waiting.add(member);
    this.#line.push(member);
  }

  /** The first has had its turn. */
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
