/** Queues without duplicates. */

/**
 * A queue without duplicates, from which any member may be removed. A Set keeps the entries of
 * deleted members until it shrinks, and a new iteration passes over all of them. To take n members,
 * each by a new iteration, would therefore cost n² steps. This queue continues one iteration.
 */
export class Line<Member> {
  readonly #members = new Set<Member>();
  #order = this.#members.values();
  #first: Member | undefined;

  get size(): number {
    return this.#members.size;
  }

  get first(): Member | undefined {
    if (this.#first !== undefined && this.#members.has(this.#first)) return this.#first;
    if (this.#members.size === 0) return undefined;
    let next = this.#order.next();
    if (next.done === true) next = (this.#order = this.#members.values()).next();
    return (this.#first = next.value);
  }

  add(member: Member): void {
    this.#members.add(member);
  }

  delete(member: Member): void {
    this.#members.delete(member);
  }

  clear(): void {
    this.#members.clear();
  }

  /** Makes the next member the first; the former first stays in the queue. */
  passFirst(): void {
    this.#first = undefined;
  }
}

/** A queue without duplicates, in order of arrival. */
export class Turns<T> {
  readonly #waiting = new Set<T>();
  #line: T[] = [];
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
