/**
 * What the serving thread shows of shards, slices and links: their state at the published revision. With each commit the committer reports
 * what it has changed. Bound: one entry per shard, per slice and per link.
 */
import { isUnknown, type ShardState } from '../../domain/claim.js';
import type { Subscription } from '../../domain/ports.js';
import type { Pushes } from '../../domain/store-port.js';
import { hasLeft, isForgotten, type LinkState, type SliceState } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Neighbour } from '../../domain/via.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { Committed } from './committer-messages.js';
import type { Connection } from './database.js';
import { readShards } from './shard-table.js';
import { readLinks } from './link-table.js';
import { readSlices } from './slice-table.js';

type Listener = Parameters<Pushes['follow']>[0];

export class PublishedShards {
  readonly #shards = new Map<ShardName, ShardState>();
  readonly #slices = new Map<string, SliceState>();
  readonly #links = new Map<Neighbour, LinkState>();
  readonly #listeners = new Set<Listener>();

  /** Reads what is there; the committer must not have begun yet. */
  constructor(database: Connection) {
    this.publish({ shards: readShards(database), slices: readSlices(database), links: readLinks(database) });
  }

  get shards(): readonly ShardState[] {
    return [...this.#shards.values()];
  }

  get slices(): readonly SliceState[] {
    return [...this.#slices.values()];
  }

  objectsOf(slice: Slice): number {
    return this.#slices.get(formatSlice(slice))?.objects ?? 0;
  }

  get links(): readonly LinkState[] {
    return [...this.#links.values()];
  }

  follow(listener: Listener): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  publish({ shards, slices, links }: Pick<Committed, 'shards' | 'slices' | 'links'>): void {
    for (const state of shards) {
      if (isUnknown(state)) this.#shards.delete(state.shard);
      else this.#shards.set(state.shard, state);
    }
    for (const state of slices) {
      if (isForgotten(state)) this.#slices.delete(formatSlice(state.slice));
      else this.#slices.set(formatSlice(state.slice), state);
    }
    for (const state of links) {
      if (hasLeft(state)) this.#links.delete(state.neighbour);
      else this.#links.set(state.neighbour, state);
    }
  }

  /** Reports to followers what a commit that is published now has changed. */
  notify({ shards, slices }: Pick<Committed, 'shards' | 'slices'>): void {
    if (shards.length > 0 || slices.length > 0) for (const listener of this.#listeners) listener({ shards, slices });
  }
}
