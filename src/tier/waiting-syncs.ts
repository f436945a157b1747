/**
 * Slices that are to be synced, in the order in which they may be: those that declare types first, those of declared types last. The latter
 * wait until everything is sent that was published when they came, because their declaration may be one of those changes.
 */
import type { Revision } from '../domain/revision.js';
import type { SliceSync } from './slice-sync.js';

export class WaitingSyncs {
  readonly #declaring = new Set<SliceSync>();
  readonly #builtIn = new Set<SliceSync>();
  /** With what was published when it came. */
  readonly #declared = new Map<SliceSync, Revision>();

  add(sync: SliceSync, published: Revision): void {
    if (sync.declaresTypes) this.#declaring.add(sync);
    else if (sync.slice.resource.identity === '') this.#builtIn.add(sync);
    else this.#declared.set(sync, published);
  }

  /** The next one; undefined when none may be synced. `position`: up to where changes are sent. `declaring`: of those alone. */
  take(position: Revision, of?: 'declaring'): SliceSync | undefined {
    const [first] = of === 'declaring' ? this.#declaring : this.#inOrder();
    if (first === undefined || (this.#declared.get(first) ?? 0) > position) return undefined;
    this.delete(first);
    return first;
  }

  delete(sync: SliceSync): void {
    for (const waiting of [this.#declaring, this.#builtIn, this.#declared]) waiting.delete(sync);
  }

  clear(): void {
    for (const waiting of [this.#declaring, this.#builtIn, this.#declared]) waiting.clear();
  }

  *#inOrder(): Iterable<SliceSync> {
    yield* this.#declaring;
    yield* this.#builtIn;
    yield* this.#declared.keys();
  }
}
