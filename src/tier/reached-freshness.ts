import type { Routes } from './routes.js';
import type { ToldFreshness } from './told-freshness.js';

export type LinksFreshness = Pick<ToldFreshness, 'presence' | 'shard' | 'slice'>;

/** As links have told; of a shard whose origin none of them leads to nobody is connected, whatever was told before. */
export function reachedFreshness(told: ToldFreshness, routes: Pick<Routes, 'unreachedMs'>): LinksFreshness {
  return {
    presence: (side) => told.presence(side),
    shard: (side, shard) => {
      const sinceMs = routes.unreachedMs(shard);
      return sinceMs === undefined ? told.shard(side, shard) : { connected: false, sinceMs };
    },
    slice: (side, slice) => {
      const freshness = told.slice(side, slice);
      return freshness && routes.unreachedMs(slice.shard) !== undefined ? { ...freshness, connected: false } : freshness;
    },
  };
}
