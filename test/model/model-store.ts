/**
 * The store as anyone would write it who had all the memory and time in the world: an array of changes, and whoever asks
 * for a state replays it from the beginning. It is right because it is obvious; the real store is compared with it.
 */
import { formatClientKey, type Key } from '../../src/domain/key.js';
import { decide, type Mutation } from '../../src/domain/mutation.js';
import type { Revision } from '../../src/domain/revision.js';
import { matches, type Scope } from '../../src/domain/scope.js';
import { keyText } from '../contract/read-all.js';

type Held = Readonly<{ key: Key; revision: Revision }>;

type ModelChange = Readonly<{ kind: 'create' | 'update' | 'delete'; key: Key; revision: Revision; replaced: Revision }>;

export type ModelOutcome = Readonly<{ kind: 'written'; revision: Revision } | { kind: 'refused'; why: 'exists' | 'absent' | 'changed' }>;

export class ModelStore {
  /** The change at revision r is at r - 1. */
  readonly #changes: ModelChange[] = [];
  /** By key, now. */
  readonly #current = new Map<string, Held>();

  get published(): Revision {
    return this.#changes.length;
  }

  submit(mutation: Mutation): ModelOutcome {
    const { key } = mutation;
    const verdict = decide(mutation, this.held(key));
    if (verdict !== 'write') return { kind: 'refused', why: verdict };
    const revision = this.#append(mutation.kind, key);
    if (mutation.kind === 'delete') this.#restate(key);
    return { kind: 'written', revision };
  }

  held(key: Key): Revision | undefined {
    return this.#current.get(keyText(key))?.revision;
  }

  /** What stood in the scope at a revision, in no order. */
  at(revision: Revision, scope: Scope): readonly string[] {
    const state = new Map<string, Revision>();
    for (const change of this.#between(scope, 0, revision)) {
      if (change.kind === 'delete') state.delete(keyText(change.key));
      else state.set(keyText(change.key), change.revision);
    }
    return [...state].map(([key, held]) => `${key}@${held}`);
  }

  changes(scope: Scope, after: Revision, upTo: Revision): readonly string[] {
    return this.#between(scope, after, upTo).map(
      ({ kind, key, revision, replaced }) => `${revision} ${kind} ${keyText(key)} of ${replaced}`,
    );
  }

  touched(scope: Scope, after: Revision, upTo: Revision): readonly string[] {
    return [...new Set(this.#between(scope, after, upTo).map(({ key }) => keyText(key)))].toSorted();
  }

  #between(scope: Scope, after: Revision, upTo: Revision): readonly ModelChange[] {
    return this.#changes.slice(after, upTo).filter(({ key }) => matches(scope, key));
  }

  #append(kind: 'put' | 'delete', key: Key): Revision {
    const revision = this.published + 1;
    const replaced = this.held(key) ?? 0;
    if (kind === 'put') this.#current.set(keyText(key), { key, revision });
    else this.#current.delete(keyText(key));
    this.#changes.push({ kind: kind === 'delete' ? 'delete' : replaced === 0 ? 'create' : 'update', key, revision, replaced });
    return revision;
  }

  /** The newest namesake on another shard is stated again (D4). */
  #restate(gone: Key): void {
    const namesakes = [...this.#current.values()].filter(({ key }) => formatClientKey(key) === formatClientKey(gone));
    const survivor = namesakes.toSorted((a, b) => b.revision - a.revision)[0];
    if (survivor !== undefined) this.#append('put', survivor.key);
  }
}
