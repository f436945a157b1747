/**
 * What the store knows of shards and slices, in memory: where a shard comes from, and whether a slice is synced.
 * Bound: one entry per shard and per slice, as in the store.
 */
import { isUnknown, type ShardState } from '../domain/claim.js';
import type { Pushes, Subscription } from '../domain/ports.js';
import { isForgotten, type SliceState } from '../domain/push.js';
import { formatResource, type Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';

export class KnownShards {
  readonly #shards = new Map<ShardName, ShardState>();
  readonly #slices = new Map<ShardName, Map<string, SliceState>>();
  readonly #subscription: Subscription;
  #changes = 0;

  private constructor(pushes: Pushes) {
    this.#subscription = pushes.follow((changed) => this.#learn(changed));
  }

  static async open(pushes: Pushes): Promise<KnownShards> {
    const known = new KnownShards(pushes);
    // What `follow` reports while these are read is newer.
    const [shards, slices] = await Promise.all([pushes.shards(), pushes.slices()]);
    known.#learn({
      shards: shards.filter(({ shard }) => !known.#shards.has(shard)),
      slices: slices.filter(({ slice }) => known.slice(slice) === undefined),
    });
    return known;
  }

  get shards(): Iterable<ShardState> {
    return this.#shards.values();
  }

  /** How often something about a shard has changed. */
  get changes(): number {
    return this.#changes;
  }

  get count(): number {
    return this.#shards.size;
  }

  shard(shard: ShardName): ShardState | undefined {
    return this.#shards.get(shard);
  }

  slice({ shard, resource }: Slice): SliceState | undefined {
    return this.#slices.get(shard)?.get(formatResource(resource));
  }

  slicesOf(shard: ShardName): Iterable<SliceState> {
    return this.#slices.get(shard)?.values() ?? [];
  }

  /** The types of a shard of which something is known. */
  resourcesOf(shard: ShardName): readonly Resource[] {
    return [...this.slicesOf(shard)].map(({ slice }) => slice.resource);
  }

  /**
   * Whether all of the slice is here: the shard's present term synced it in full. A plain writer syncs nothing; once what it
   * wrote counts as synced, so does every type of which it wrote nothing.
   */
  isSynced(slice: Slice): boolean {
    const shard = this.#shards.get(slice.shard);
    if (shard?.via === undefined) return false;
    const known = this.slice(slice);
    if (known !== undefined) return known.syncedTerm === shard.term;
    return shard.plain && [...this.slicesOf(slice.shard)].some(({ syncedTerm }) => syncedTerm === shard.term);
  }

  close(): void {
    this.#subscription.cancel();
  }

  #learn({ shards, slices }: Readonly<{ shards: readonly ShardState[]; slices: readonly SliceState[] }>): void {
    this.#changes += shards.length;
    for (const state of shards) {
      if (!isUnknown(state)) this.#shards.set(state.shard, state);
      else {
        this.#shards.delete(state.shard);
        this.#slices.delete(state.shard);
      }
    }
    for (const state of slices) {
      const { shard, resource } = state.slice;
      const ofShard = this.#slices.get(shard) ?? new Map<string, SliceState>();
      this.#slices.set(shard, ofShard);
      if (isForgotten(state)) ofShard.delete(formatResource(resource));
      else ofShard.set(formatResource(resource), state);
    }
  }
}
