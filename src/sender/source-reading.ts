/** One reading of a source, from opening to release. It asks for one batch at a time. */
import type { SliceSource, Outgoing } from './source.js';

export class SourceReading {
  readonly #abort = new AbortController();
  readonly #batches: AsyncIterator<readonly Outgoing[]>;
  #isReading = false;

  constructor(source: SliceSource) {
    this.#batches = source.open(this.#abort.signal)[Symbol.asyncIterator]();
  }

  /** Whether a batch was requested and has not arrived. */
  get isReading(): boolean {
    return this.#isReading;
  }

  /** The next batch; undefined if the source has ended. */
  async read(): Promise<readonly Outgoing[] | undefined> {
    this.#isReading = true;
    try {
      const { done, value } = await this.#batches.next();
      return done === true ? undefined : value;
    } finally {
      this.#isReading = false;
    }
  }

  /** Aborts the source; resolves once it has stopped. */
  async close(): Promise<void> {
    this.#abort.abort();
    try {
      await this.#batches.return?.();
    } catch {
      // Ignores errors of a source that was aborted.
    }
  }
}
