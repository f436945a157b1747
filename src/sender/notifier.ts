/**
 * Wakes those who wait for a change. A waiter names the ring it has seen already, so that it does not miss a change between
 * looking and waiting:
 *
 *   const seen = notifier.rings;  look;  await notifier.after(seen, signal);
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

  /** Resolves once it has rung after `seen`, or `signal` is aborted. */
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
