/** The result of reading again something that may change while the server runs. */
export type Reloaded = Readonly<{ kind: 'changed' } | { kind: 'unchanged' } | { kind: 'failed'; error: Error }>;

/** Something that is read again at intervals, and on demand. */
export interface Reloadable {
  /** Reads it now. What changed is in use when this returns; what cannot be used is logged and changes nothing. */
  reload(): Reloaded;
  /** Ends the reading at intervals. */
  close(): void;
}

/** Several, by their names in the log; what is undefined is left out. */
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
