/**
 * How many shards each child has brought here. A cache forgets no shard by itself and knows a bounded number, which no single child may use up. A
 * removed shard still counts for the child that brought it, until this process ends, or an operator forgets either.
 *
 * Bound: `shardsMax` of each child.
 */
import type { ShardName } from '../domain/shard.js';
import type { Neighbour, Via } from '../domain/via.js';
import type { PublishedState } from '../domain/published-state.js';

export class ChildShards {
  readonly #known: Pick<PublishedState, 'changes' | 'shard' | 'shards'>;
  readonly #shardsMax: number;
  /** What comes from a neighbour now, and what it claimed before. */
  readonly #byVia = new Map<Via, Set<ShardName>>();

  readonly #lookedAt = new Map<Via, number>();

  constructor(known: Pick<PublishedState, 'changes' | 'shard' | 'shards'>, shardsMax: number) {
    this.#known = known;
    this.#shardsMax = shardsMax;
    for (const { shard, via } of known.shards) if (via !== undefined) this.#of(via).add(shard);
  }

  /** Whether the neighbour may claim one more shard, or this one again; it counts from now on. A parent may claim as many as it likes. */
  take(neighbour: Neighbour, shard: ShardName): boolean {
    if (neighbour === 'parent') return true;
    const shards = this.#of(neighbour);
    if (shards.has(shard)) return true;
    if (shards.size >= this.#shardsMax && this.#lookedAt.get(neighbour) !== this.#known.changes) this.#letGo(neighbour, shards);
    if (shards.size >= this.#shardsMax) return false;
    shards.add(shard);
    return true;
  }

  /** The child is gone for good. */
  leave(neighbour: Neighbour): void {
    this.#byVia.delete(neighbour);
    this.#lookedAt.delete(neighbour);
  }

  /** The shard is forgotten: it counts for nobody. */
  forget(shard: ShardName): void {
    for (const shards of this.#byVia.values()) shards.delete(shard);
  }

  /** Drops what comes from another neighbour by now. Done again only once something has changed. */
  #letGo(via: Via, shards: Set<ShardName>): void {
    this.#lookedAt.set(via, this.#known.changes);
    for (const shard of shards) {
      const viaNow = this.#known.shard(shard)?.via;
      if (viaNow !== undefined && viaNow !== via) shards.delete(shard);
    }
  }

  #of(via: Via): Set<ShardName> {
    const shards = this.#byVia.get(via) ?? new Set<ShardName>();
    this.#byVia.set(via, shards);
    return shards;
  }
}
