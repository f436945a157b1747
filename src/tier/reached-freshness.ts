import type { Routes } from './routes.js';
import type { ReportedFreshness } from './reported-freshness.js';

export type LinksFreshness = Pick<ReportedFreshness, 'presence' | 'shard' | 'slice' | 'reportedOf'>;

/**
 * What the links have reported. A shard whose origin no link reaches counts as not connected,
 * whatever was reported.
 */
export function reachedFreshness(reported: ReportedFreshness, routes: Pick<Routes, 'unreachedMs'>): LinksFreshness {
  return {
    presence: (neighbour) => reported.presence(neighbour),
    reportedOf: (neighbour, shard) => reported.reportedOf(neighbour, shard),
    shard: (neighbour, shard) => {
      const sinceMs = routes.unreachedMs(shard);
      return sinceMs === undefined ? reported.shard(neighbour, shard) : { connected: false, sinceMs };
    },
    slice: (neighbour, slice) => {
      const freshness = reported.slice(neighbour, slice);
      return freshness && routes.unreachedMs(slice.shard) !== undefined ? { ...freshness, connected: false } : freshness;
    },
  };
}
