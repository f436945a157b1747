/**
 * Those who wait in a line, each once; any of them may leave it. The first is found without going through those that left before it: a Set keeps what is deleted
 * until it shrinks, so to begin anew for each of n takes n² steps.
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

  /** The first stays in the line, and another one is first. */
  passFirst(): void {
    this.#first = undefined;
  }
}
