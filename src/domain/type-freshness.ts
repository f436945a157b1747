/**
 * What `GET /services/cache/freshness` answers: how fresh a cache is for the objects of one type, on each shard, and whether it proves that an
 * object of the type does not exist. Words and values are those of the status report (status.ts), of which this is a digest.
 *
 *   {"cache": {"id": "c-1", "version": "0.1.0", "epoch": 1234567, "resourceVersion": "…", "ready": true}, "tree": {"complete": true},
 *    "newestChange": "…", "whole": true,
 *    "shards": [{"shard": "amber", "connection": {"kind": "connected", "forMs": 192000, "peer": "10.0.0.7"}, "slices": 1,
 *                "sourceConnected": true, "whole": true, "changedAgoMs": 900, "lagMs": 3}],
 *    "shardsLeftOut": 0}
 *
 * Bound: `shardsMax` shards are listed, of one line each; first those that keep the type from being whole. `whole` is always about all of them.
 */
import type { ShardName } from './shard.js';
import type { ShardConnection, ShardStatus, SliceStatus, StatusReport, TreeStatus } from './status.js';

/** A type, by any identity when none is given, on one shard, or on all when none is given. */
export type FreshnessQuestion = Readonly<{ group: string; resource: string; identity: string | undefined; shard: ShardName | undefined }>;

export type TypeFreshnessReport = Readonly<{
  cache: StatusReport['cache'];
  tree: Pick<TreeStatus, 'complete'>;
  /**
   * The resourceVersion of the newest change of the type that the cache has, on whichever shard, deletes included; of what has not changed since the cache
   * started, that of the start. A watch that has come so far has everything that this answer is about.
   */
  newestChange: string;
  /**
   * Whether the absence of an object proves anything: the cache is ready, knows every shard of its tree, and has every object of the type that each
   * of them has, or that the one has which was asked about. Their pushers are all connected, to the cache and to their sources.
   */
  whole: boolean;
  /** In the order of their names. Removed shards are left out, and so is one that was asked about and is not known. */
  shards: readonly ShardFreshness[];
  /** How many more there are. */
  shardsLeftOut: number;
}>;

/** Where a type has several identities, the worst of its slices counts. */
export type ShardFreshness = Readonly<{
  shard: ShardName;
  connection: ShardConnection;
  /** How many are known of the type; 0 when nobody has reported it yet, which is not whole. */
  slices: number;
  sourceConnected: SliceStatus['sourceConnected'];
  whole: boolean;
  changedAgoMs: SliceStatus['changedAgoMs'];
  lagMs: SliceStatus['lagMs'];
}>;

const shardsMax = 100;

/** `slices`: those of the type. One pass: an answer may be about thousands of shards. */
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

/** What is said of a type, one shard after the other, those that are removed left out. It keeps only what is listed. */
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
      shards: listed.toSorted((a, b) => (a.shard === b.shard ? 0 : a.shard < b.shard ? -1 : 1)),
      shardsLeftOut: this.#count - listed.length,
    };
  }
}

/** Whether what the cache does not have of the type is not on the shard. Nobody can say so of a shard that is written over plain HTTP. */
export function provesAbsence({ whole, connection, sourceConnected, lagMs }: ShardFreshness): boolean {
  return whole && connection.kind === 'connected' && sourceConnected === true && lagMs !== null;
}
