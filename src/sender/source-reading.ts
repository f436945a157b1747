/** One reading of a source, from its opening to its release: asks for one batch at a time, and only when there is room. */
import type { SliceSource, Outgoing } from './source.js';

export class SourceReading {
  readonly #abort = new AbortController();
  readonly #batches: AsyncIterator<readonly Outgoing[]>;
  #isReading = false;

  constructor(source: SliceSource) {
    this.#batches = source.open(this.#abort.signal)[Symbol.asyncIterator]();
  }

  /** Whether a batch was asked for and has not come. */
  get isReading(): boolean {
    return this.#isReading;
  }

  /** The next batch; undefined when the source has ended. */
  async read(): Promise<readonly Outgoing[] | undefined> {
    this.#isReading = true;
    try {
      const { done, value } = await this.#batches.next();
      return done === true ? undefined : value;
    } finally {
      this.#isReading = false;
    }
  }

  /** Aborts it; resolves once the source has stopped. */
  async close(): Promise<void> {
    this.#abort.abort();
    try {
      await this.#batches.return?.();
    } catch {
      // It was aborted: its failure no longer matters.
    }
  }
}
