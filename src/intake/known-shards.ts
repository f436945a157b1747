/**
 * What the store knows of shards and slices, in memory: where a shard comes from, and whether a slice is synced. Slices are found by shard
 * and by type. Bound: one entry per shard and two per slice, as many as in the store.
 */
import { isUnknown, type ShardState } from '../domain/claim.js';
import { entryOf } from '../domain/entry-of.js';
import type { Subscription } from '../domain/ports.js';
import type { Pushes } from '../domain/store-port.js';
import { isForgotten, type SliceState } from '../domain/push.js';
import { formatGroupResource, formatResource, type Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';

type TypeOfSlices = Pick<Resource, 'group' | 'resource'> & Readonly<{ identity: string | undefined }>;

export class KnownShards {
  readonly #shards = new Map<ShardName, ShardState>();
  readonly #slices = new Map<ShardName, Map<string, SliceState>>();
  /** By group and resource, then by identity. */
  readonly #types = new Map<string, Map<string, Map<ShardName, SliceState>>>();
  /** What `isPlainSynced` has found, until something of the shard changes. */
  readonly #plainSynced = new Map<ShardName, boolean>();
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

  /** Shards that were ever claimed or removed, and those that hold something. */
  get names(): ReadonlySet<ShardName> {
    return new Set([...this.#shards.keys(), ...this.#slices.keys()]);
  }

  hasName(shard: ShardName): boolean {
    return this.#shards.has(shard) || this.#slices.has(shard);
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

  /** The slices of a type by shard, of each of its identities, or of that one. They go on changing. */
  slicesOfType({ group, resource, identity }: TypeOfSlices): readonly ReadonlyMap<ShardName, SliceState>[] {
    const identities = this.#types.get(formatGroupResource({ group, resource }));
    if (identity === undefined) return [...(identities?.values() ?? [])];
    const slices = identities?.get(identity);
    return slices === undefined ? [] : [slices];
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
    return this.isPlainSynced(slice.shard);
  }

  /** Whether what plain writers wrote to the shard counts as synced. */
  isPlainSynced(name: ShardName): boolean {
    const shard = this.#shards.get(name);
    if (shard?.plain !== true) return false;
    const known = this.#plainSynced.get(name) ?? [...this.slicesOf(name)].some(({ syncedTerm }) => syncedTerm === shard.term);
    this.#plainSynced.set(name, known);
    return known;
  }

  close(): void {
    this.#subscription.cancel();
  }

  #learn({ shards, slices }: Readonly<{ shards: readonly ShardState[]; slices: readonly SliceState[] }>): void {
    this.#changes += shards.length;
    for (const { slice } of slices) this.#plainSynced.delete(slice.shard);
    for (const state of shards) {
      this.#plainSynced.delete(state.shard);
      if (!isUnknown(state)) this.#shards.set(state.shard, state);
      else {
        this.#shards.delete(state.shard);
        for (const { slice } of this.slicesOf(state.shard)) this.#forget(slice);
      }
    }
    for (const state of slices) {
      if (isForgotten(state)) this.#forget(state.slice);
      else this.#keep(state);
    }
  }

  #keep(state: SliceState): void {
    const { shard, resource } = state.slice;
    entryOf(this.#slices, shard, () => new Map<string, SliceState>()).set(formatResource(resource), state);
    const ofType = entryOf(this.#types, formatGroupResource(resource), () => new Map<string, Map<ShardName, SliceState>>());
    entryOf(ofType, resource.identity, () => new Map<ShardName, SliceState>()).set(shard, state);
  }

  #forget({ shard, resource }: Slice): void {
    const type = formatGroupResource(resource);
    const [ofShard, identities] = [this.#slices.get(shard), this.#types.get(type)];
    const ofType = identities?.get(resource.identity);
    ofShard?.delete(formatResource(resource));
    ofType?.delete(shard);
    if (ofShard?.size === 0) this.#slices.delete(shard);
    if (ofType?.size === 0) identities?.delete(resource.identity);
    if (identities?.size === 0) this.#types.delete(type);
  }
}
