/**
 * What an engine publishes of shards, slices and links, indexed by shard and by type.
 *
 * P1 Only `publish` changes the state. It then calls the followers, in the same tick.
 * P4 An unknown shard has no slices.
 *
 * Bound: one entry per shard and link, and two per slice.
 */
import { isUnknown, type ShardState } from '../domain/claim.js';
import { entryOf } from '../domain/base/entry-of.js';
import { Listeners } from '../domain/base/listeners.js';
import type { Subscription } from '../domain/ports.js';
import type { PublishedState, StateChange, TypeOrIdentity } from '../domain/published-state.js';
import { hasLeft, isForgotten, type LinkState, type SliceState } from '../domain/push.js';
import { formatGroupResource, formatResource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { Neighbour } from '../domain/via.js';

export class State implements PublishedState {
  readonly #shards = new Map<ShardName, ShardState>();
  readonly #links = new Map<Neighbour, LinkState>();
  readonly #slices = new Map<ShardName, Map<string, SliceState>>();
  /** By group and resource, then by identity. */
  readonly #types = new Map<string, Map<string, Map<ShardName, SliceState>>>();
  /**
   * Results of `isPlainSynced`, each valid until a commit changes the shard or one of its slices.
   */
  readonly #plainSynced = new Map<ShardName, boolean>();
  readonly #followers = new Listeners<StateChange>();
  #changes = 0;

  /** `found`: what the engine read when it opened the store. */
  constructor(found: Readonly<{ shards: Iterable<ShardState>; slices: Iterable<SliceState>; links: Iterable<LinkState> }>) {
    for (const state of found.shards) this.#shards.set(state.shard, state);
    for (const state of found.slices) this.#keep(state);
    for (const state of found.links) this.#links.set(state.neighbour, state);
  }

  get shards(): Iterable<ShardState> {
    return this.#shards.values();
  }

  get shardCount(): number {
    return this.#shards.size;
  }

  get slices(): Iterable<SliceState> {
    return this.#everySlice();
  }

  get links(): Iterable<LinkState> {
    return this.#links.values();
  }

  get names(): ReadonlySet<ShardName> {
    return new Set([...this.#shards.keys(), ...this.#slices.keys()]);
  }

  get changes(): number {
    return this.#changes;
  }

  hasName(shard: ShardName): boolean {
    return this.#shards.has(shard) || this.#slices.has(shard);
  }

  shard(shard: ShardName): ShardState | undefined {
    return this.#shards.get(shard);
  }

  slice({ shard, resource }: Slice): SliceState | undefined {
    return this.#slices.get(shard)?.get(formatResource(resource));
  }

  link(neighbour: Neighbour): LinkState | undefined {
    return this.#links.get(neighbour);
  }

  slicesOf(shard: ShardName): Iterable<SliceState> {
    return this.#slices.get(shard)?.values() ?? [];
  }

  slicesOfType({ group, resource, identity }: TypeOrIdentity): readonly ReadonlyMap<ShardName, SliceState>[] {
    const identities = this.#types.get(formatGroupResource({ group, resource }));
    if (identity === undefined) return [...(identities?.values() ?? [])];
    const slices = identities?.get(identity);
    return slices === undefined ? [] : [slices];
  }

  isSynced(slice: Slice): boolean {
    const shard = this.#shards.get(slice.shard);
    if (shard?.via === undefined) return false;
    const known = this.slice(slice);
    if (known !== undefined) return known.syncedTerm === shard.term;
    return this.isPlainSynced(slice.shard);
  }

  isPlainSynced(name: ShardName): boolean {
    const shard = this.#shards.get(name);
    if (shard?.plain !== true) return false;
    const known = this.#plainSynced.get(name) ?? [...this.slicesOf(name)].some(({ syncedTerm }) => syncedTerm === shard.term);
    this.#plainSynced.set(name, known);
    return known;
  }

  follow(listener: (change: StateChange) => void): Subscription {
    return this.#followers.subscribe(listener);
  }

  publish(change: StateChange): void {
    const { shards, slices, links } = change;
    if (shards.length + slices.length + links.length === 0) return;
    this.#changes += shards.length;
    for (const { slice } of slices) this.#plainSynced.delete(slice.shard);
    for (const state of shards) this.#learnShard(state);
    for (const state of slices) {
      if (isForgotten(state)) this.#forget(state.slice);
      else this.#keep(state);
    }
    for (const state of links) {
      if (hasLeft(state)) this.#links.delete(state.neighbour);
      else this.#links.set(state.neighbour, state);
    }
    this.#followers.notify(change);
  }

  *#everySlice(): Iterable<SliceState> {
    for (const ofShard of this.#slices.values()) yield* ofShard.values();
  }

  #learnShard(state: ShardState): void {
    this.#plainSynced.delete(state.shard);
    if (!isUnknown(state)) {
      this.#shards.set(state.shard, state);
      return;
    }
    this.#shards.delete(state.shard);
    for (const { slice } of this.slicesOf(state.shard)) this.#forget(slice);
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
