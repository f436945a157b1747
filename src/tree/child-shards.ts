/**
 * Counts the shards that each child has claimed here. A cache forgets no shard and knows a bounded
 * number of them, so no single child may use that number up. A removed shard counts for its child
 * until the process ends, or an operator forgets the child.
 *
 * Bound: `shardsMax` for each child.
 */
import { entryOf } from '../domain/base/entry-of.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour, Via } from '../domain/via.js';
import type { PublishedState } from '../domain/published-state.js';

export class ChildShards {
  readonly #known: Pick<PublishedState, 'changes' | 'shard' | 'shards'>;
  readonly #shardsMax: number;
  /** For each neighbour: the shards whose via it is, and those that it claimed earlier. */
  readonly #byVia = new Map<Via, Set<ShardName>>();

  readonly #checkedAt = new Map<Via, number>();

  constructor(known: Pick<PublishedState, 'changes' | 'shard' | 'shards'>, shardsMax: number) {
    this.#known = known;
    this.#shardsMax = shardsMax;
    for (const { shard, via } of known.shards) if (via !== undefined) this.#of(via).add(shard);
  }

  /**
   * Returns whether the neighbour may claim the shard. If so, the shard counts for the neighbour
   * from then on. The parent may claim any number of shards.
   */
  tryAdd(neighbour: Neighbour, shard: ShardName): boolean {
    if (neighbour === 'parent') return true;
    const shards = this.#of(neighbour);
    if (shards.has(shard)) return true;
    if (shards.size >= this.#shardsMax && this.#checkedAt.get(neighbour) !== this.#known.changes) this.#dropMoved(neighbour, shards);
    if (shards.size >= this.#shardsMax) return false;
    shards.add(shard);
    return true;
  }

  leave(neighbour: Neighbour): void {
    this.#byVia.delete(neighbour);
    this.#checkedAt.delete(neighbour);
  }

  /**
   * Drops the shards whose via is another neighbour now. `tryAdd` repeats this only after the
   * published state has changed, because only then a via may differ.
   */
  #dropMoved(via: Via, shards: Set<ShardName>): void {
    this.#checkedAt.set(via, this.#known.changes);
    for (const shard of shards) {
      const viaNow = this.#known.shard(shard)?.via;
      if (viaNow !== undefined && viaNow !== via) shards.delete(shard);
    }
  }

  #of(via: Via): Set<ShardName> {
    return entryOf(this.#byVia, via, () => new Set<ShardName>());
  }
}
