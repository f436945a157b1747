/**
 * Says that something changed to those who wait for it. Who waits names the ring it has seen already, so that a change between
 * looking and waiting is not missed:
 *
 *   const seen = bell.rings;  look;  await bell.after(seen, signal);
 */
export class Bell {
  #rings = 0;
  readonly #waiting = new Set<() => void>();

  get rings(): number {
    return this.#rings;
  }

  ring(): void {
    this.#rings += 1;
    for (const wake of this.#waiting) wake();
  }

  /** Resolves once it has rung after `seen`, or `signal` is aborted. */
  after(seen: number, signal: AbortSignal): Promise<void> {
    if (this.#rings !== seen || signal.aborted) return Promise.resolve();
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
