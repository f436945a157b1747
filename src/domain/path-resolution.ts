/**
 * What a path leads to. `GET /services/cache/resolve?path=` answers it, and of what it found how fresh that is.
 *
 *   {"kind": "cluster", "shard": "amber", "cluster": "2hkmx5l3ov9dd7vw", "path": "root:org:team", "unavailable": false, "shards": ["amber"],
 *    "freshness": [{"shard": "amber", "current": true, "lagMs": 3}]}
 *   {"kind": "mount", "url": "https://mounts.example.com/clusters/abc", "unavailable": false, "shards": ["amber"], "freshness": […]}
 *   {"kind": "unknown"}                                 it does not exist: every shard that could have it said so
 *   {"kind": "uncertain", "shards": ["birch"]}          it may exist: these have not pushed all their path entries, or are not connected
 *   {"kind": "disputed", "cluster": "…", "shards": ["birch", "cedar"], "expected": "amber"}   these claim the logical cluster, and its Workspace says where it is
 *   {"kind": "ambiguous", "clusters": ["…", "…"]}       logical clusters that give themselves the same path and have no owner
 */
import type { ClusterName } from './cluster.js';
import type { ShardName } from './shard.js';

export type PathResolution = Resolved | MissingPath;

export type Resolved =
  | Readonly<{
      kind: 'cluster';
      /** Where the logical cluster is active. */
      shard: ShardName;
      cluster: ClusterName;
      /** Whether a Workspace on the way is unavailable: kcp's proxy then answers 503. */
      unavailable: boolean;
      /** Those whose entries led there. */
      shards: readonly ShardName[];
    }>
  /** Segments behind a mounted Workspace are left to whatever serves it. */
  | Readonly<{ kind: 'mount'; url: string; unavailable: boolean; shards: readonly ShardName[] }>;

export type MissingPath =
  | Readonly<{ kind: 'unknown' }>
  | Readonly<{ kind: 'uncertain'; shards: readonly ShardName[] }>
  | Readonly<{ kind: 'disputed' } & Dispute>
  | Readonly<{ kind: 'ambiguous'; clusters: readonly ClusterName[] }>;

/** `shards`: those that claim the logical cluster. `expected`: where its Workspace says that it is; undefined where none says it. */
export type Dispute = Readonly<{ cluster: ClusterName; shards: readonly ShardName[]; expected?: ShardName | undefined }>;

/** How fresh the path entries of a shard are. `current`: all that the shard has are here, as of `lagMs` ago; null when nobody reports it. */
export type PathFreshness = Readonly<{ shard: ShardName; current: boolean; lagMs: number | null }>;

/** `path`: as the logical cluster gives it, whatever path was asked for; undefined where it has none. */
export type PathAnswer = (Resolved & Readonly<{ path?: string | undefined; freshness: readonly PathFreshness[] }>) | MissingPath;
