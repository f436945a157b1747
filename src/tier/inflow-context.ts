/** What the receiving half of a link looks at, as it is now: policies, types and shards change. */
import { incarnationAheadMaxMs } from '../domain/push.js';
import type { LinkSide } from '../domain/side.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { Edges } from './edges.js';
import type { InflowContext } from './inflow-state.js';
import type { LinkPaths } from './link-paths.js';

export type InflowContextParts = Readonly<{
  from: LinkSide;
  /** Undefined before the policies of both ends are known: nothing is let in. */
  edges: Edges | undefined;
  known: KnownShards;
  paths: Pick<LinkPaths, 'accepts' | 'isWaiting'>;
  nowMs: number;
  /** What all links take, whoever sends it. */
  intake: Pick<InflowContext, 'typeOf' | 'credit' | 'limits' | 'systemClusters'>;
}>;

/** A shard is never forgotten, so nobody may make up as many as they like. */
const shardsMax = 100_000;

export function inflowContext({ from, edges, known, paths, nowMs, intake }: InflowContextParts): InflowContext {
  return {
    ...intake,
    from,
    hearsClaim: (shard) => edges?.hearsClaim(shard, from) === true && (known.shard(shard) !== undefined || known.count < shardsMax),
    incarnationMax: nowMs + incarnationAheadMaxMs,
    takes: (slice) => edges?.takes(slice, from) ?? false,
    accepts: (object) => paths.accepts(object),
    isWaiting: (slice) => paths.isWaiting(slice),
    holds: (slice) => known.slice(slice) !== undefined,
    isInStep: (slice) => (known.slice(slice)?.edge ?? '') !== '',
  };
}
