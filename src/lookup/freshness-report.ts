/**
 * How fresh a cache is for one type, as far as look-ups need it: the answer of `GET
 * /services/cache/freshness` (domain/type-freshness.ts). The cache may be newer than this reader. A
 * value that the reader does not know becomes null ("nobody reports it"). That is no fault, because
 * a controller must not stop when its cache reports a new value.
 */
import { isObject, type Members } from '../domain/base/members.js';
import { CacheFault } from './cache-fault.js';
import { jsonValue } from '../json/json-value.js';

/** How fresh the objects of one type are on one shard. Durations are in milliseconds. */
export type Freshness = Readonly<{
  shard: string;
  /** Whether the shard's pusher is connected; null if nobody reports it, as for plain HTTP. */
  connected: boolean | null;
  /** Whether that pusher is connected to the shard itself; null if nobody reports it. */
  sourceConnected: boolean | null;
  /** Whether the cache has every object of the type that the shard has, as of `lagMs` ago. */
  whole: boolean;
  /** How long ago an object of the type last changed on this shard; null if none ever did. */
  changedAgoMs: number | null;
  /** The age of the oldest change that is known to be missing here; null if nobody reports it. */
  lagMs: number | null;
  /** How long ago this report was requested. The ages above are as of then. */
  reportedAgoMs: number;
}>;

/** How fresh a type is, on all shards that the cache knows or on the requested one. */
export type TypeFreshness = Readonly<{
  /**
   * Whether the absence of an object proves that it does not exist. For this, the cache must be
   * ready, know every shard of its tree, and have every object of the type that these shards have.
   * All pushers must be connected, to the cache and to their sources. `whole` is false if a shard
   * is written over plain HTTP, because nobody reports whether all its objects are here.
   */
  whole: boolean;
  /** Sorted by name, without removed shards. */
  shards: readonly Freshness[];
  /**
   * How many shards are left out. A cache lists at most 100, and prefers shards that keep the type
   * from being whole.
   */
  shardsLeftOut: number;
}>;

/** `isKnown`: the cache has something of the type on that shard. */
type ShardReport = Readonly<{ isKnown: boolean }> & Omit<Freshness, 'reportedAgoMs'>;

/**
 * The newest change of the type, and the epoch of the cache at the time of the report
 * (`store/epochs.ts`).
 */
export type NewestChange = Readonly<{ resourceVersion: string; epoch: string }>;

/** `newestChange`: undefined if the cache does not report it. */
export type FreshnessReport = Readonly<{
  whole: boolean;
  newestChange: NewestChange | undefined;
  shards: readonly ShardReport[];
  shardsLeftOut: number;
}>;

/** Throws CacheFault if the text is not a cache's report. */
export function parseFreshnessReport(text: string): FreshnessReport {
  return readFreshnessReport(jsonValue(text));
}

export function readFreshnessReport(value: unknown): FreshnessReport {
  const report = recordOf(value);
  return {
    whole: truthOf(report['whole']) === true,
    newestChange: newestChangeOf(report),
    shards: listOf(report['shards']).map(shardOf),
    shardsLeftOut: numberOf(report['shardsLeftOut']) ?? 0,
  };
}

/**
 * Undefined if the report does not list the shard, or the cache knows nothing of the type there.
 */
export function freshnessOn({ shards }: FreshnessReport, shard: string, reportedAgoMs: number): Freshness | undefined {
  const received = shards.find((each) => each.shard === shard);
  return received?.isKnown === true ? freshnessOf(received, reportedAgoMs) : undefined;
}

export function typeFreshness({ whole, shards, shardsLeftOut }: FreshnessReport, reportedAgoMs: number): TypeFreshness {
  return { whole, shards: shards.map((shard) => freshnessOf(shard, reportedAgoMs)), shardsLeftOut };
}

function freshnessOf({ isKnown: _, ...freshness }: ShardReport, reportedAgoMs: number): Freshness {
  return { ...freshness, reportedAgoMs };
}

function shardOf(value: unknown): ShardReport {
  const received = recordOf(value);
  const { kind } = recordOf(received['connection']);
  return {
    shard: textOf(received['shard']),
    connected: kind === 'connected' ? true : kind === 'away' ? false : null,
    isKnown: (numberOf(received['slices']) ?? 0) > 0,
    sourceConnected: truthOf(received['sourceConnected']),
    whole: truthOf(received['whole']) === true,
    changedAgoMs: numberOf(received['changedAgoMs']),
    lagMs: numberOf(received['lagMs']),
  };
}

function newestChangeOf({ newestChange, cache }: Members): NewestChange | undefined {
  const epoch = isObject(cache) ? cache['epoch'] : undefined;
  return typeof newestChange === 'string' && typeof epoch === 'number'
    ? { resourceVersion: newestChange, epoch: String(epoch) }
    : undefined;
}

function recordOf(value: unknown): Members {
  if (isObject(value)) return value;
  throw unreadable('an object');
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw unreadable('a list');
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw unreadable('a string');
}

function truthOf(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function unreadable(wanted: string): CacheFault {
  return new CacheFault('unreadable', `the answer is not the freshness report of a Strata cache: ${wanted} is missing`);
}
