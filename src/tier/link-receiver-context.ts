/** What the receiving half of a link looks at, as it is now: policies, types and shards change. */
import type { Neighbour } from '../domain/via.js';
import type { HeldRemovals } from '../intake/held-removals.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { LinkFilters } from './link-filters.js';
import type { LinkReceiverContext } from './link-receiver-state.js';
import type { LinkPaths } from './link-paths.js';

export type LinkReceiverContextParts = Readonly<{
  from: Neighbour;
  /** Undefined before the policies of both ends are known: nothing is let in. */
  filters: LinkFilters | undefined;
  known: KnownShards;
  paths: Pick<LinkPaths, 'accepts'>;
  removals: Pick<HeldRemovals, 'isHeld'>;
  /** What all links take, whoever sends it. */
  intake: Pick<LinkReceiverContext, 'typeOf' | 'credit' | 'limits' | 'systemClusters'>;
}>;

export function linkReceiverContext({ from, filters, known, paths, removals, intake }: LinkReceiverContextParts): LinkReceiverContext {
  const { typeOf, credit, limits, systemClusters } = intake;
  // Made for every frame: to spread another object into it would take most of that time.
  return {
    typeOf,
    credit,
    limits,
    systemClusters,
    from,
    takes: (slice) => filters?.takes(slice, from) ?? false,
    accepts: (object) => paths.accepts(object),
    holds: (slice) => known.slice(slice) !== undefined,
    isHeld: (slice) => removals.isHeld(slice),
  };
}
