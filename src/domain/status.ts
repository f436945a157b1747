/**
 * What `GET /services/cache/status` answers (D10): which cache this is and how fresh each shard's part of it is. Ages are
 * durations, never clock times, for the clocks of two machines never agree. Members are only ever added; a reader ignores
 * what it does not know.
 *
 *   {"cache": {"id": "…", "version": "0.1.0", "epoch": 1234567, "resourceVersion": "…", "ready": true},
 *    "shards": [{"shard": "amber", "incarnation": 1763700000000, "removed": false,
 *                "connection": {"kind": "connected", "forMs": 192000, "peer": "10.0.0.7"},
 *                "slices": [{"group": "apis.kcp.io", "resource": "apiexports", "identity": "", "synced": true, "stated": "current",
 *                            "objects": 12, "bytes": 30211, "changedAgoMs": 900, "lagMs": 3, "sourceConnected": true}]}]}
 */
import type { Incarnation } from './push.js';
import type { ShardName } from './shard.js';

export type StatusReport = Readonly<{
  cache: Readonly<{
    id: string;
    version: string;
    epoch: number;
    resourceVersion: string;
    /** What /readyz says. */
    ready: boolean;
  }>;
  shards: readonly ShardStatus[];
}>;

export type ShardStatus = Readonly<{
  shard: ShardName;
  /** Of the pusher that has the shard; left out when none ever claimed it. */
  incarnation?: Incarnation;
  /** Whether an operator removed it and nobody came back since. */
  removed: boolean;
  connection: ShardConnection;
  slices: readonly SliceStatus[];
}>;

export type ShardConnection =
  | Readonly<{ kind: 'connected'; forMs: number; peer: string }>
  | Readonly<{ kind: 'away'; forMs: number }>
  /** Written over plain HTTP: there is no connection that could be there or not. */
  | Readonly<{ kind: 'plain' }>;

export type SliceStatus = Readonly<{
  group: string;
  resource: string;
  identity: string;
  /** Whether it was ever stated in full. */
  synced: boolean;
  /** By the incarnation that has the shard now, by an earlier one, by none; or assumed, for plain HTTP tells no end. */
  stated: 'current' | 'earlier' | 'never' | 'assumed';
  objects: number;
  /** Of their bodies. */
  bytes: number;
  /** Null when it never changed. */
  changedAgoMs: number | null;
  /** How old the oldest change is that the pusher knows and that is not durable here; null when nobody tells. */
  lagMs: number | null;
  /** Whether the pusher has its source before it; null when nobody tells. */
  sourceConnected: boolean | null;
}>;
