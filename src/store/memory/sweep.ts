/**
 * Sweeps a memory disk, in steps and in key order: removes objects without a mark. It looks for them once, when a slice's
 * turn comes; an object that is unmarked later already existed then.
 *
 * Bound: a step deletes at most `sweepDeletesMax` objects, or a whole small slice at once; between two steps others commit.
 */
import { sweepDeletesMax } from '../asked.js';
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';
import type { Slice } from '../../domain/slice.js';
import type { Walk } from '../syncs.js';
import type { MemoryChanges } from './changes.js';
import { orderOf } from './reader.js';
import type { MemorySlices } from './slices.js';

export class MemorySweep {
  readonly #slices: MemorySlices;
  /** The unmarked keys left in the slice that is being swept, the first one last. */
  readonly #left = new WeakMap<Walk, Key[]>();

  constructor(slices: MemorySlices) {
    this.#slices = slices;
  }

  /** Takes the walk one step further; it is done when no slices are left. Gives the revisions of the deletes. */
  step(walk: Walk, changes: MemoryChanges, atOnce = 0): readonly Revision[] {
    const removed: Revision[] = [];
    const deletesMax = Math.max(sweepDeletesMax, atOnce + 1);
    while (removed.length < deletesMax && walk.slices[0] !== undefined) {
      const left = this.#left.get(walk) ?? this.#unheard(walk, walk.slices[0].slice);
      this.#left.set(walk, left);
      const key = left.pop();
      if (key === undefined) {
        walk.slices.shift();
        this.#left.delete(walk);
        continue;
      }
      const held = changes.held(key);
      if (held !== undefined && walk.marks.isUnmarked(held.revision)) removed.push(changes.delete(held).revision);
    }
    return removed;
  }

  #unheard({ marks, covers, cluster }: Walk, slice: Slice): Key[] {
    const rows = [...(this.#slices.of(slice)?.objects.values() ?? [])];
    const order = orderOf({ ...slice.resource, shard: slice.shard, cluster: '*' });
    return rows
      .filter(({ key, revision }) => (cluster === '' || key.cluster === cluster) && marks.isUnmarked(revision) && covers(key))
      .map(({ key }) => key)
      .toSorted((a, b) => order(b, a));
  }
}
