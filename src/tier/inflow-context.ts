/** What the receiving half of a link looks at, as it is now: policies, types and shards change. */
import { incarnationAheadMaxMs } from '../domain/push.js';
import type { LinkSide } from '../domain/side.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { Edges } from './edges.js';
import type { InflowContext } from './inflow-state.js';

export type InflowContextParts = Readonly<{
  from: LinkSide;
  /** Undefined before the policies of both ends are known: nothing is let in. */
  edges: Edges | undefined;
  known: KnownShards;
  nowMs: number;
  /** What all links take, whoever sends it. */
  intake: Pick<InflowContext, 'typeOf' | 'credit' | 'limits' | 'systemClusters'>;
}>;

/** A shard is never forgotten, so nobody may make up as many as they like. */
const shardsMax = 100_000;

export function inflowContext({ from, edges, known, nowMs, intake }: InflowContextParts): InflowContext {
  const { typeOf, credit, limits, systemClusters } = intake;
  // Made for every frame: to spread another object into it would take most of that time.
  return {
    typeOf,
    credit,
    limits,
    systemClusters,
    from,
    hearsClaim: (shard) => edges?.hearsClaim(shard, from) === true && (known.shard(shard) !== undefined || known.count < shardsMax),
    incarnationMax: nowMs + incarnationAheadMaxMs,
    takes: (slice) => edges?.takes(slice, from) ?? false,
    accepts: (object) => edges?.accepts(object, from) ?? false,
    holds: (slice) => known.slice(slice) !== undefined,
    isInStep: (slice) => (known.slice(slice)?.edge ?? '') !== '',
  };
}
