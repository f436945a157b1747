/** What the receiving half of a link looks at, as it is now: policies, types and shards change. */
import type { LinkSide } from '../domain/side.js';
import type { HeldRemovals } from '../intake/held-removals.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { Edges } from './edges.js';
import type { InflowContext } from './inflow-state.js';
import type { LinkPaths } from './link-paths.js';

export type InflowContextParts = Readonly<{
  from: LinkSide;
  /** Undefined before the policies of both ends are known: nothing is let in. */
  edges: Edges | undefined;
  known: KnownShards;
  paths: Pick<LinkPaths, 'accepts'>;
  removals: Pick<HeldRemovals, 'isHeld'>;
  /** What all links take, whoever sends it. */
  intake: Pick<InflowContext, 'typeOf' | 'credit' | 'limits' | 'systemClusters'>;
}>;

export function inflowContext({ from, edges, known, paths, removals, intake }: InflowContextParts): InflowContext {
  const { typeOf, credit, limits, systemClusters } = intake;
  // Made for every frame: to spread another object into it would take most of that time.
  return {
    typeOf,
    credit,
    limits,
    systemClusters,
    from,
    takes: (slice) => edges?.takes(slice, from) ?? false,
    accepts: (object) => paths.accepts(object),
    holds: (slice) => known.slice(slice) !== undefined,
    isHeld: (slice) => removals.isHeld(slice),
  };
}
