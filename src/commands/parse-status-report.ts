/** A status report as it comes from a cache, which may be older or newer: unknown members are ignored, missing ones are an error. */
import { CacheError } from '../domain/errors.js';
import { parseShardName } from '../domain/shard.js';
import type { ShardConnection, ShardStatus, SliceStatus, StatusReport } from '../domain/status.js';

/** Throws CacheError. */
export function parseStatusReport(text: string): StatusReport {
  const report = recordOf(JSON.parse(text));
  const cache = recordOf(report['cache']);
  return {
    cache: {
      id: textOf(cache['id']),
      version: textOf(cache['version']),
      epoch: numberOf(cache['epoch']),
      resourceVersion: textOf(cache['resourceVersion']),
      ready: truthOf(cache['ready']),
    },
    shards: listOf(report['shards']).map(shardOf),
  };
}

function shardOf(value: unknown): ShardStatus {
  const status = recordOf(value);
  const shard = parseShardName(textOf(status['shard']));
  if (shard === undefined) throw unread('the name of a shard');
  const incarnation = status['incarnation'] === undefined ? {} : { incarnation: numberOf(status['incarnation']) };
  return {
    shard,
    ...incarnation,
    removed: truthOf(status['removed']),
    connection: connectionOf(recordOf(status['connection'])),
    slices: listOf(status['slices']).map(sliceOf),
  };
}

function connectionOf(connection: Members): ShardConnection {
  switch (connection['kind']) {
    case 'connected':
      return { kind: 'connected', forMs: numberOf(connection['forMs']), peer: textOf(connection['peer']) };
    case 'away':
      return { kind: 'away', forMs: numberOf(connection['forMs']) };
    case 'plain':
      return { kind: 'plain' };
    default:
      throw unread('a connection');
  }
}

function sliceOf(value: unknown): SliceStatus {
  const slice = recordOf(value);
  const stated = (['current', 'earlier', 'never', 'assumed'] as const).find((word) => word === slice['stated']);
  if (stated === undefined) throw unread('how a slice was stated');
  return {
    group: textOf(slice['group']),
    resource: textOf(slice['resource']),
    identity: textOf(slice['identity']),
    synced: truthOf(slice['synced']),
    stated,
    objects: numberOf(slice['objects']),
    bytes: numberOf(slice['bytes']),
    changedAgoMs: orNull(slice['changedAgoMs'], numberOf),
    lagMs: orNull(slice['lagMs'], numberOf),
    sourceConnected: orNull(slice['sourceConnected'], truthOf),
  };
}

type Members = Readonly<Record<string, unknown>>;

function recordOf(value: unknown): Members {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Members;
  throw unread('an object');
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw unread('a list');
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw unread('a text');
}

function numberOf(value: unknown): number {
  if (typeof value === 'number') return value;
  throw unread('a number');
}

function truthOf(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw unread('true or false');
}

function orNull<T>(value: unknown, read: (value: unknown) => T): T | null {
  return value === null ? null : read(value);
}

function unread(wanted: string): CacheError {
  return new CacheError(`what the cache answered is no status of a cache: ${wanted} is missing`);
}
