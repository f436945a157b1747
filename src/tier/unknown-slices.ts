/** Slices that the other end of a link holds, and of which nothing was known here at some time since it opened. Each counts once. */
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';

export class UnknownSlices {
  readonly #byShard = new Map<ShardName, Map<string, Slice>>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  of(shard: ShardName): Iterable<Slice> {
    return this.#byShard.get(shard)?.values() ?? [];
  }

  /** False: it is among them. */
  add(slice: Slice): boolean {
    const ofShard = this.#byShard.get(slice.shard) ?? new Map<string, Slice>();
    const name = formatSlice(slice);
    if (ofShard.has(name)) return false;
    this.#byShard.set(slice.shard, ofShard.set(name, slice));
    this.#count += 1;
    return true;
  }
}
