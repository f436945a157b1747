/**
 * The inventory that the other end of a link sends while the link opens. Each frame is sorted when
 * it arrives, because sorting the whole inventory at once would block the event loop for half a
 * second.
 *
 * Bound: that of NamedSlices. A slice that is reported twice counts twice.
 */
import { NamedSlices } from '../domain/named-slices.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice } from '../domain/slice.js';
import type { HeldSlice } from '../frames/frame.js';

export class PeerInventory {
  /** By the text of each slice. The sending half takes this map over. */
  readonly byShard = new Map<ShardName, Map<string, HeldSlice>>();
  readonly #named = new NamedSlices();
  #isCurrentWithAny = false;

  get isCurrentWithAny(): boolean {
    return this.#isCurrentWithAny;
  }

  /** Returns false if the other end reports too many slices. */
  update(held: readonly HeldSlice[]): boolean {
    for (const each of held) {
      this.#named.add(recordHeld(this.byShard, each));
      this.#isCurrentWithAny ||= each.filterHash !== '';
    }
    return !this.#named.isBeyond;
  }
}

/** Returns the text of the slice. */
export function recordHeld(byShard: Map<ShardName, Map<string, HeldSlice>>, held: HeldSlice): string {
  const { shard } = held.slice;
  const name = formatSlice(held.slice);
  byShard.set(shard, (byShard.get(shard) ?? new Map<string, HeldSlice>()).set(name, held));
  return name;
}
