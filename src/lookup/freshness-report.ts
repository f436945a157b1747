/**
 * How fresh a cache is, as far as a look-up needs to know: read from the answer of `GET /services/cache/status` (domain/status.ts). The
 * cache may be newer than this reader: a value that is not known here becomes "nobody reports it" (null), never a guess and never a
 * fault, because a controller must not stop when its cache learns a new word.
 */
import { CacheFault } from './cache-fault.js';
import { jsonValue } from './json-value.js';
import { isOfType, type TypeRef } from './object-ref.js';

/** The freshness of the objects of one type on one shard. Durations are in milliseconds. */
export type Freshness = Readonly<{
  shard: string;
  /** Whether the shard's pusher is connected now; null when nobody reports it, as for plain HTTP. */
  connected: boolean | null;
  /** Whether that pusher is connected to the shard itself; null when nobody reports it. */
  sourceConnected: boolean | null;
  /** Whether the cache has every object of the type that the shard has, as of `lagMs` ago. */
  whole: boolean;
  /** How long ago one of them changed last; null when none ever did. */
  changedAgoMs: number | null;
  /** How old the oldest change is that is known to be missing here; null when nobody reports it. */
  lagMs: number | null;
  /** How long ago the report was asked for; the ages above are as they were then. */
  reportedAgoMs: number;
}>;

/** The freshness of one type, on all shards that the cache knows. */
export type TypeFreshness = Readonly<{
  /**
   * Whether the absence of an object proves anything: the cache is ready, knows every shard of its tree, and has every object of the type that each
   * of them has. Their pushers are all connected, to the cache and to their sources. Nobody can say so of a shard that is written over plain HTTP.
   */
  whole: boolean;
  /** In the order of their names; removed shards are left out. */
  shards: readonly Freshness[];
}>;

type SliceReport = Required<TypeRef> & Pick<Freshness, 'whole' | 'changedAgoMs' | 'lagMs' | 'sourceConnected'>;
type ShardReport = Readonly<{ shard: string; connected: boolean | null; removed: boolean; slices: readonly SliceReport[] }>;

export type FreshnessReport = Readonly<{ ready: boolean; complete: boolean; shards: readonly ShardReport[] }>;

/** Throws CacheFault when the text is not a cache's status. */
export function parseFreshnessReport(text: string): FreshnessReport {
  const report = recordOf(jsonValue(text));
  const [cache, tree] = [recordOf(report['cache']), recordOf(report['tree'] ?? {})];
  return {
    ready: truthOf(cache['ready']) === true,
    complete: truthOf(tree['complete']) === true,
    shards: listOf(report['shards']).map(shardOf),
  };
}

/** Undefined when the report knows nothing of the type on that shard. */
export function freshnessOn(report: FreshnessReport, shard: string, type: TypeRef, reportedAgoMs: number): Freshness | undefined {
  const received = report.shards.find((each) => each.shard === shard);
  return received?.slices.some((slice) => isOfType(type, slice)) === true ? freshnessOf(received, type, reportedAgoMs) : undefined;
}

/** A shard that never reported the type is not whole: it may not have begun. */
export function typeFreshness({ ready, complete, shards: all }: FreshnessReport, type: TypeRef, reportedAgoMs: number): TypeFreshness {
  const shards = all.filter(({ removed }) => !removed).map((shard) => freshnessOf(shard, type, reportedAgoMs));
  const isVouched = ({ whole, connected, sourceConnected, lagMs }: Freshness): boolean =>
    whole && connected === true && sourceConnected === true && lagMs !== null;
  return { whole: ready && complete && shards.length > 0 && shards.every(isVouched), shards };
}

/** Where a reference without identity means several types, the worst of them counts. */
function freshnessOf({ shard, connected, slices }: ShardReport, type: TypeRef, reportedAgoMs: number): Freshness {
  const own = slices.filter((slice) => isOfType(type, slice));
  const lags = own.map(({ lagMs }) => lagMs).filter((lagMs) => lagMs !== null);
  const changes = own.map(({ changedAgoMs }) => changedAgoMs).filter((agoMs) => agoMs !== null);
  return {
    shard,
    connected,
    sourceConnected: worst(own.map(({ sourceConnected }) => sourceConnected)),
    whole: own.length > 0 && own.every(({ whole }) => whole),
    changedAgoMs: changes.length === 0 ? null : changes.reduce((a, b) => Math.min(a, b)),
    lagMs: own.length === 0 || lags.length < own.length ? null : lags.reduce((a, b) => Math.max(a, b)),
    reportedAgoMs,
  };
}

function worst(received: readonly (boolean | null)[]): boolean | null {
  if (received.includes(false)) return false;
  return received.length === 0 || received.includes(null) ? null : true;
}

function shardOf(value: unknown): ShardReport {
  const received = recordOf(value);
  const { kind } = recordOf(received['connection']);
  return {
    shard: textOf(received['shard']),
    connected: kind === 'connected' ? true : kind === 'away' ? false : null,
    removed: truthOf(received['removed']) === true,
    slices: listOf(received['slices']).map(sliceOf),
  };
}

function sliceOf(value: unknown): SliceReport {
  const received = recordOf(value);
  return {
    group: textOf(received['group']),
    resource: textOf(received['resource']),
    identity: textOf(received['identity']),
    whole: truthOf(received['whole']) === true,
    changedAgoMs: numberOf(received['changedAgoMs']),
    lagMs: numberOf(received['lagMs']),
    sourceConnected: truthOf(received['sourceConnected']),
  };
}

type Members = Readonly<Record<string, unknown>>;

function recordOf(value: unknown): Members {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Members;
  throw unreadable('an object');
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw unreadable('a list');
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw unreadable('a text');
}

function truthOf(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function unreadable(wanted: string): CacheFault {
  return new CacheFault('unreadable', `what the cache answered is no status of a cache: ${wanted} is missing`);
}
