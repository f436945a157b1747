/** One task that many wait for. It is aborted once nobody waits for it any more. */
import { untilAborted } from '../domain/until-aborted.js';

export class SharedTask<Result> {
  readonly #abort = new AbortController();
  readonly #result: Promise<Result>;
  #waiting = 0;

  constructor(task: (signal: AbortSignal) => Promise<Result>) {
    this.#result = task(this.#abort.signal);
    // Whoever waits receives it; it may fail after the last one has left.
    this.#result.catch(() => {});
  }

  get isAborted(): boolean {
    return this.#abort.signal.aborted;
  }

  /** What the task comes to. Rejects with the signal's reason once that is aborted. */
  async join(signal: AbortSignal): Promise<Result> {
    this.#waiting += 1;
    try {
      return await untilAborted(this.#result, signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#abort.abort();
    }
  }

  /** Resolves once the task is over, however it ended. */
  async ended(): Promise<void> {
    await this.#result.then(
      () => {},
      () => {},
    );
  }
}
