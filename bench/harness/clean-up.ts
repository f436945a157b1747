/**
 * Ends everything that a run has opened, however the run ends. Steps run in reverse order, each
 * once, and a failure does not stop the others. (Node 20 has no AsyncDisposableStack.)
 */
export class CleanUp {
  readonly #steps: (() => Promise<void>)[] = [];

  defer(step: () => Promise<void>): void {
    this.#steps.push(step);
  }

  use<T extends AsyncDisposable>(value: T): T {
    this.defer(async () => await value[Symbol.asyncDispose]());
    return value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop())
      await step().catch((error: unknown) => errors.push(error));
    if (errors.length > 0) throw new AggregateError(errors, 'not everything could be ended');
  }
}
