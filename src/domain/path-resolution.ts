/**
 * The result of resolving a path. `GET /services/cache/resolve?path=` returns it, with the
 * freshness of the entries that it was read from.
 *
 *  {"kind": "cluster", "shard": "amber", "cluster": "2hkmx5l3ov9dd7vw", "path": "root:org:team",
 *   "unavailable": false, "shards": ["amber"],
 *   "freshness": [{"shard": "amber", "current": true, "lagMs": 3}]}
 *  {"kind": "mount", "url": "https://mounts.example.com/clusters/abc", "unavailable": false,
 *   "shards": ["amber"], "freshness": […]}
 *  {"kind": "unknown"}
 *      the path does not exist: every shard that could have it has sent all its entries
 *  {"kind": "uncertain", "shards": ["birch"]}
 *      the path may exist: these shards have not sent all their entries, or are not connected
 *  {"kind": "disputed", "cluster": "…", "shards": ["birch", "cedar"], "expected": "amber"}
 *      these shards claim the logical cluster; `expected` is the shard that its Workspace names
 *  {"kind": "ambiguous", "clusters": ["…", "…"]}
 *      several logical clusters without an owner have this path in their entries
 */
import type { ClusterName } from './cluster.js';
import type { ShardName } from './shard.js';

export type PathResolution = Resolved | MissingPath;

export type Resolved =
  | Readonly<{
      kind: 'cluster';
      /** The shard on which the logical cluster is active. */
      shard: ShardName;
      cluster: ClusterName;
      /** Whether a Workspace on the path is unavailable; kcp's proxy then answers 503. */
      unavailable: boolean;
      /** The shards whose entries led to this result. */
      shards: readonly ShardName[];
    }>
  /** The server of the mount handles the path segments behind a mounted Workspace. */
  | Readonly<{ kind: 'mount'; url: string; unavailable: boolean; shards: readonly ShardName[] }>;

export type MissingPath =
  | Readonly<{ kind: 'unknown' }>
  | Readonly<{ kind: 'uncertain'; shards: readonly ShardName[] }>
  | Readonly<{ kind: 'disputed' } & Dispute>
  | Readonly<{ kind: 'ambiguous'; clusters: readonly ClusterName[] }>;

/**
 * `shards`: those that claim the logical cluster. `expected`: the shard that its Workspace names;
 * undefined if none names one.
 */
export type Dispute = Readonly<{ cluster: ClusterName; shards: readonly ShardName[]; expected?: ShardName | undefined }>;

/**
 * How fresh a shard's path entries are. `current`: this cache has all entries that the shard had
 * `lagMs` ago. `lagMs` is null if nobody reports it.
 */
export type PathFreshness = Readonly<{ shard: ShardName; current: boolean; lagMs: number | null }>;

/**
 * `path`: the logical cluster's own path, whatever path was requested; undefined if it has none.
 */
export type PathAnswer = (Resolved & Readonly<{ path?: string | undefined; freshness: readonly PathFreshness[] }>) | MissingPath;
