/**
 * The readers whose type the server does not serve. A type may appear at any time, and should be
 * read within seconds. A type that never appears must cost the server next to nothing. So a few
 * readers retry every few seconds. Many readers together retry at most twice a second, but each at
 * least every two minutes.
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

  /**
   * The longest wait of a reader between two requests, in milliseconds; the shortest is half of it.
   */
  get waitMsMax(): number {
    return Math.min(Math.max(waitMsMin, this.#readers.size * msPerReader), waitMsMax);
  }
}
