/**
 * The slices that are to be synced, in order: those whose objects declare types first, those of
 * declared types last. A slice of a declared type waits until all changes published before it was
 * added are sent: one of them may declare the type.
 */
import { Line } from '../../domain/base/queues.js';
import type { Revision } from '../../domain/revision.js';
import type { SliceSync } from './slice-sync.js';

export class WaitingSyncs {
  readonly #declaring = new Line<SliceSync>();
  readonly #builtIn = new Line<SliceSync>();
  readonly #declared = new Line<SliceSync>();
  /** For each slice of a declared type: the published revision when it was added. */
  readonly #publishedThen = new Map<SliceSync, Revision>();

  add(sync: SliceSync, published: Revision): void {
    if (sync.declaresTypes) this.#declaring.add(sync);
    else if (sync.slice.resource.identity === '') this.#builtIn.add(sync);
    else {
      this.#declared.add(sync);
      this.#publishedThen.set(sync, published);
    }
  }

  /**
   * Takes the next slice. Undefined if none may be synced. `position`: all changes up to here are
   * sent. With `of`, takes only slices whose objects declare types.
   */
  take(position: Revision, of?: 'declaring'): SliceSync | undefined {
    const first = this.#declaring.first ?? (of === 'declaring' ? undefined : (this.#builtIn.first ?? this.#declared.first));
    if (first === undefined || (this.#publishedThen.get(first) ?? 0) > position) return undefined;
    this.delete(first);
    return first;
  }

  delete(sync: SliceSync): void {
    for (const waiting of [this.#declaring, this.#builtIn, this.#declared, this.#publishedThen]) waiting.delete(sync);
  }

  clear(): void {
    for (const waiting of [this.#declaring, this.#builtIn, this.#declared, this.#publishedThen]) waiting.clear();
  }
}
