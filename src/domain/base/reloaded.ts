/** The result of reloading something that may change while the server runs. */
export type Reloaded = Readonly<{ kind: 'changed' } | { kind: 'unchanged' } | { kind: 'failed'; error: Error }>;

export interface Reloadable {
  /**
   * Reloads at once. A valid change is in use when `reload` returns; an invalid one is logged and
   * changes nothing.
   */
  reload(): Reloaded;
  close(): void;
}

/** Several reloadables, by their names in the log; undefined ones are ignored. */
export class ReloadedTogether {
  readonly #all: readonly (readonly [name: string, reloadable: Reloadable])[];

  constructor(all: Readonly<Record<string, Reloadable | undefined>>) {
    this.#all = Object.entries(all).filter((entry): entry is [string, Reloadable] => entry[1] !== undefined);
  }

  reload(): ReadonlyMap<string, Reloaded> {
    return new Map(this.#all.map(([name, reloadable]) => [name, reloadable.reload()]));
  }

  close(): void {
    for (const [, reloadable] of this.#all) reloadable.close();
  }
}
