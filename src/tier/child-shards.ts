/**
 * How many shards each child has brought here. A cache forgets no shard by itself, and remembers a bounded number of them, so no child may
 * fill that alone. One that was removed still counts for the child that brought it, until this process ends, or an operator forgets either.
 *
 * Bound: `shardsMax` of each child.
 */
import type { ShardName } from '../domain/shard.js';
import type { LinkSide, Side } from '../domain/side.js';
import type { KnownShards } from '../intake/known-shards.js';

export class ChildShards {
  readonly #known: Pick<KnownShards, 'changes' | 'shard' | 'shards'>;
  readonly #shardsMax: number;
  /** Besides what a side has now, what it has claimed and what has left it again. */
  readonly #ofSide = new Map<Side, Set<ShardName>>();

  readonly #lookedAt = new Map<Side, number>();

  constructor(known: Pick<KnownShards, 'changes' | 'shard' | 'shards'>, shardsMax: number) {
    this.#known = known;
    this.#shardsMax = shardsMax;
    for (const { shard, side } of known.shards) if (side !== undefined) this.#of(side).add(shard);
  }

  /** Whether the side may claim one more shard, or this one anew; it counts from now on. A parent may claim as many as it likes. */
  take(side: LinkSide, shard: ShardName): boolean {
    if (side === 'parent') return true;
    const shards = this.#of(side);
    if (shards.has(shard)) return true;
    if (shards.size >= this.#shardsMax && this.#lookedAt.get(side) !== this.#known.changes) this.#letGo(side, shards);
    if (shards.size >= this.#shardsMax) return false;
    shards.add(shard);
    return true;
  }

  /** The child is gone for good. */
  leave(side: LinkSide): void {
    this.#ofSide.delete(side);
    this.#lookedAt.delete(side);
  }

  /** Nothing is remembered of the shard: it counts for nobody. */
  forget(shard: ShardName): void {
    for (const shards of this.#ofSide.values()) shards.delete(shard);
  }

  /** What another side has by now counts for that one. Looked at again once something has changed. */
  #letGo(side: Side, shards: Set<ShardName>): void {
    this.#lookedAt.set(side, this.#known.changes);
    for (const shard of shards) {
      const sideNow = this.#known.shard(shard)?.side;
      if (sideNow !== undefined && sideNow !== side) shards.delete(shard);
    }
  }

  #of(side: Side): Set<ShardName> {
    const shards = this.#ofSide.get(side) ?? new Set<ShardName>();
    this.#ofSide.set(side, shards);
    return shards;
  }
}
