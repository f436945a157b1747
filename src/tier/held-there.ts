/**
 * What the other end of a link reports to hold while the link opens. Each piece is sorted as it comes: all at once they would take half a second.
 * Bound: that of NamedSlices, each report counted.
 */
import { NamedSlices } from '../domain/named-slices.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice } from '../domain/slice.js';
import type { HeldSlice } from '../frames/frame.js';

export class HeldThere {
  /** By the names of the slices. Whoever sends to the other end takes it over. */
  readonly byShard = new Map<ShardName, Map<string, HeldSlice>>();
  readonly #named = new NamedSlices();
  #isCurrentWithAny = false;

  get isCurrentWithAny(): boolean {
    return this.#isCurrentWithAny;
  }

  /** False: it reports on too many. */
  note(held: readonly HeldSlice[]): boolean {
    for (const each of held) {
      this.#named.add(noteHeld(this.byShard, each));
      this.#isCurrentWithAny ||= each.filterHash !== '';
    }
    return !this.#named.isBeyond;
  }
}

/** Returns the name of the slice. */
export function noteHeld(byShard: Map<ShardName, Map<string, HeldSlice>>, held: HeldSlice): string {
  const { shard } = held.slice;
  const name = formatSlice(held.slice);
  byShard.set(shard, (byShard.get(shard) ?? new Map<string, HeldSlice>()).set(name, held));
  return name;
}
