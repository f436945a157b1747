/**
 * The readers whose type the server does not serve now. A type may come at any time, and is to be read within seconds; one that never comes must cost
 * the server next to nothing. So few are asked for every few seconds, and more of them twice a second together, but each once in two minutes.
 */
const waitMsMin = 5_000;
const waitMsMax = 120_000;
const msPerReader = 1_000;

export class AbsentTypes {
  readonly #readers = new Set<object>();

  add(reader: object): void {
    this.#readers.add(reader);
  }

  delete(reader: object): void {
    this.#readers.delete(reader);
  }

  has(reader: object): boolean {
    return this.#readers.has(reader);
  }

  /** For how long each of them waits at most between two requests, in milliseconds; half of it is the least. */
  get waitMsMax(): number {
    return Math.min(Math.max(waitMsMin, this.#readers.size * msPerReader), waitMsMax);
  }
}
