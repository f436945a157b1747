/**
 * Slices that the other end of a link holds, and of which nothing was known here at some time since it opened. Each counts once; where its shard
 * comes from is asked about the first `askedMax` of them, so that one neighbour does not use up what may be asked for all.
 */
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';

const askedMax = 1_000;

export class UnknownSlices {
  readonly #names = new Set<string>();
  readonly #asked = new Map<ShardName, Slice[]>();

  get count(): number {
    return this.#names.size;
  }

  /** Those to be asked about. */
  asked(shard: ShardName): readonly Slice[] {
    return this.#asked.get(shard) ?? [];
  }

  /** Whether it is new, and to be asked about. */
  add(slice: Slice): boolean {
    const before = this.#names.size;
    this.#names.add(formatSlice(slice));
    if (this.#names.size === before || before >= askedMax) return false;
    this.#asked.set(slice.shard, [...this.asked(slice.shard), slice]);
    return true;
  }
}
