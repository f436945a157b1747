/** One task with many waiters. It is aborted once nobody waits for it. */
import { untilAborted } from '../domain/until-aborted.js';

export class SharedTask<Result> {
  readonly #abort = new AbortController();
  readonly #result: Promise<Result>;
  #waiting = 0;

  constructor(task: (signal: AbortSignal) => Promise<Result>) {
    this.#result = task(this.#abort.signal);
    // Waiters receive the error; this handler covers a failure after the last one has left.
    this.#result.catch(() => {});
  }

  get isAborted(): boolean {
    return this.#abort.signal.aborted;
  }

  /** The result of the task. Rejects with the signal's reason once the signal is aborted. */
  async join(signal: AbortSignal): Promise<Result> {
    this.#waiting += 1;
    try {
      return await untilAborted(this.#result, signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#abort.abort();
    }
  }

  /** Resolves once the task has ended, successfully or not. */
  async ended(): Promise<void> {
    await this.#result.then(
      () => {},
      () => {},
    );
  }
}
