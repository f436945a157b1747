/**
 * What the serving thread shows of shards and slices: as they were at the published revision. The committer tells with each
 * commit what it has changed. Bound: one entry per shard and per slice.
 */
import type { ShardState, SliceState } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice } from '../../domain/slice.js';
import type { Committed } from './committer-messages.js';
import type { Connection } from './database.js';
import { readShards } from './fence.js';
import { isForgotten, readSlices } from './slice-table.js';

export class ShardBook {
  readonly #shards = new Map<ShardName, ShardState>();
  readonly #slices = new Map<string, SliceState>();

  /** Reads what is there; the committer must not have begun yet. */
  constructor(database: Connection) {
    this.publish({ shards: readShards(database), slices: readSlices(database).map(({ id: _, ...state }) => state) });
  }

  get shards(): readonly ShardState[] {
    return [...this.#shards.values()];
  }

  get slices(): readonly SliceState[] {
    return [...this.#slices.values()];
  }

  publish({ shards, slices }: Pick<Committed, 'shards' | 'slices'>): void {
    for (const state of shards) this.#shards.set(state.shard, state);
    for (const state of slices) {
      if (isForgotten(state)) this.#slices.delete(formatSlice(state.slice));
      else this.#slices.set(formatSlice(state.slice), state);
    }
  }

  /** Shards whose removal was cut short. */
  get halfRemoved(): readonly ShardName[] {
    const holding = new Set(this.slices.filter(({ objects }) => objects > 0).map(({ slice }) => slice.shard));
    return this.shards.filter(({ shard, removed }) => removed && holding.has(shard)).map(({ shard }) => shard);
  }
}
