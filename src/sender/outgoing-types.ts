/**
 * Names a sender's slices in one connection: first all, in several frames, then those that are
 * added or withdrawn. Once all are named, it says whether the shard has no others.
 */
import { formatSlice, type Slice } from '../domain/slice.js';
import { frameBounds } from '../frames/frame-bounds.js';
import type { FrameOf } from '../frames/frame.js';

export class OutgoingTypes {
  readonly #slices: ReadonlyMap<string, Readonly<{ slice: Slice }>>;
  readonly #isComplete: () => boolean;
  /** Slices added or withdrawn since they were named, by text. */
  readonly #changed: Map<string, Slice>;
  #wasAll = false;

  /** `slices`: the sender's present slices by text, a live view. */
  constructor(slices: ReadonlyMap<string, Readonly<{ slice: Slice }>>, isComplete: () => boolean) {
    this.#slices = slices;
    this.#isComplete = isComplete;
    this.#changed = new Map([...slices].map(([name, { slice }]) => [name, slice]));
  }

  changed(slice: Slice): void {
    this.#changed.set(formatSlice(slice), slice);
  }

  /** The next frame; undefined if there is nothing new to send. */
  next(): FrameOf<'types'> | undefined {
    const slices: Slice[] = [];
    const withdrawn: Slice[] = [];
    for (const [name, slice] of this.#changed) {
      if (slices.length + withdrawn.length === frameBounds.namesPerFrame) break;
      this.#changed.delete(name);
      (this.#slices.has(name) ? slices : withdrawn).push(slice);
    }
    const isAll = this.#isComplete() && this.#changed.size === 0;
    if (slices.length + withdrawn.length === 0 && isAll === this.#wasAll) return undefined;
    this.#wasAll = isAll;
    return { kind: 'types', slices, withdrawn, isAll };
  }
}
