/**
 * Wakes those who wait for a change. A waiter passes the count it read before it examined the
 * state, so that it does not miss a change in between:
 *
 *  const seen = notifier.notified;  examine the state;  await notifier.after(seen, signal);
 */
export class Notifier {
  #notified = 0;
  readonly #waiting = new Set<() => void>();

  get notified(): number {
    return this.#notified;
  }

  notify(): void {
    this.#notified += 1;
    for (const wake of this.#waiting) wake();
  }

  /** Resolves once `notify` has been called after `seen` was read, or `signal` is aborted. */
  after(seen: number, signal: AbortSignal): Promise<void> {
    if (this.#notified !== seen || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }
}
