/**
 * The answer of `GET /services/cache/freshness`: how fresh a cache is for one type, on each shard.
 * It is an extract of the status report (status.ts), with the same words and values.
 *
 *  {"cache": {"id": "c-1", "version": "0.1.0", "epoch": 1234567, "resourceVersion": "…",
 *     "ready": true},
 *   "tree": {"complete": true}, "newestChange": "…", "whole": true,
 *   "shards": [{"shard": "amber",
 *     "connection": {"kind": "connected", "forMs": 192000, "peer": "10.0.0.7"},
 *     "slices": 1, "sourceConnected": true, "whole": true, "changedAgoMs": 900, "lagMs": 3}],
 *   "shardsLeftOut": 0}
 *
 * Bound: at most `shardsMax` shards are listed, preferably those that prevent the type from being
 * whole. The top-level `whole` always covers all shards.
 */
import type { ShardName } from './shard.js';
import { compareTexts } from './syntax/version-order.js';
import type { ShardConnection, ShardStatus, SliceStatus, StatusReport, TreeStatus } from './status.js';

/** `identity` undefined: any identity. `shard` undefined: all shards. */
export type FreshnessQuestion = Readonly<{ group: string; resource: string; identity: string | undefined; shard: ShardName | undefined }>;

export type TypeFreshnessReport = Readonly<{
  cache: StatusReport['cache'];
  tree: Pick<TreeStatus, 'complete'>;
  /**
   * The resourceVersion of the newest change of the type in this cache, on any shard, deletes
   * included. If nothing has changed since the cache started, the revision of the start. A watch
   * that has reached this resourceVersion has everything that this answer covers.
   */
  newestChange: string;
  /**
   * Whether the absence of an object proves that it does not exist. The cache must be ready, know
   * every shard of its tree, and have all objects of the type on these shards, or on the requested
   * one. All their pushers must be connected, to the cache and to their sources.
   */
  whole: boolean;
  /** By name. Removed shards are left out, and so is a requested shard that is unknown. */
  shards: readonly ShardFreshness[];
  shardsLeftOut: number;
}>;

/** If a type has several identities, the worst of its slices counts. */
export type ShardFreshness = Readonly<{
  shard: ShardName;
  connection: ShardConnection;
  /**
   * The number of known slices of the type; 0 while nobody has reported one, and then `whole` is
   * false.
   */
  slices: number;
  sourceConnected: SliceStatus['sourceConnected'];
  whole: boolean;
  changedAgoMs: SliceStatus['changedAgoMs'];
  lagMs: SliceStatus['lagMs'];
}>;

const shardsMax = 100;

/** `slices`: those of the type. One pass, because an answer may cover thousands of shards. */
export function shardFreshness(
  { shard, connection }: Pick<ShardStatus, 'shard' | 'connection'>,
  slices: readonly Pick<SliceStatus, 'sourceConnected' | 'whole' | 'changedAgoMs' | 'lagMs'>[],
): ShardFreshness {
  const [first] = slices;
  if (first === undefined) return { shard, connection, slices: 0, sourceConnected: null, whole: false, changedAgoMs: null, lagMs: null };
  let { sourceConnected, whole, changedAgoMs, lagMs } = first;
  for (const slice of slices) {
    if (sourceConnected !== false && slice.sourceConnected !== true) sourceConnected = slice.sourceConnected;
    whole &&= slice.whole;
    if (changedAgoMs === null || (slice.changedAgoMs !== null && slice.changedAgoMs < changedAgoMs)) changedAgoMs = slice.changedAgoMs;
    if (lagMs !== null && (slice.lagMs === null || slice.lagMs > lagMs)) lagMs = slice.lagMs;
  }
  return { shard, connection, slices: slices.length, sourceConnected, whole, changedAgoMs, lagMs };
}

/** Collects all shards but removed ones. Keeps only those that are listed. */
export class TypeFreshness {
  readonly #good: ShardFreshness[] = [];
  readonly #bad: ShardFreshness[] = [];
  #count = 0;
  #isWhole = true;

  add(shard: ShardFreshness): void {
    this.#count += 1;
    const isGood = provesAbsence(shard);
    this.#isWhole &&= isGood;
    const alike = isGood ? this.#good : this.#bad;
    if (alike.length < shardsMax) alike.push(shard);
  }

  /** `isKnowing`: the cache is ready, and knows every shard of its tree. */
  report(isKnowing: boolean): Pick<TypeFreshnessReport, 'whole' | 'shards' | 'shardsLeftOut'> {
    const listed = [...this.#bad, ...this.#good].slice(0, shardsMax);
    return {
      whole: isKnowing && this.#count > 0 && this.#isWhole,
      shards: listed.toSorted((a, b) => compareTexts(a.shard, b.shard)),
      shardsLeftOut: this.#count - listed.length,
    };
  }
}

/**
 * Whether an object of the type that this cache lacks is not on the shard either. Never true for a
 * shard that is written over plain HTTP.
 */
export function provesAbsence({ whole, connection, sourceConnected, lagMs }: ShardFreshness): boolean {
  return whole && connection.kind === 'connected' && sourceConnected === true && lagMs !== null;
}
