/**
 * The answer of GET /console/overview: the cache as the page shows it. The file holds only types,
 * because the page imports nothing else of the server.
 */
export type Overview = Readonly<{
  cache: Readonly<{ id: string; version: string; ready: boolean; resourceVersion: string }>;
  /** Null: the status report has no tree. */
  tree: TreeView | null;
  shards: readonly ShardView[];
  /** Every served type, those with the most objects first. */
  types: readonly TypeView[];
  certificates: readonly Readonly<{ use: string; subject: string; expiresInMs: number }>[];
  activity: Activity;
  /** The last warnings, errors and refusals, the newest first. */
  lines: readonly Readonly<{ agoMs: number; level: 'info' | 'warn' | 'error'; event: string; fields: string }>[];
}>;

export type TreeView = Readonly<{
  name: string | null;
  /** How many caches are above this one; null if unknown. */
  hops: number | null;
  complete: boolean;
  parent: NeighbourView | null;
  children: readonly NeighbourView[];
}>;

export type NeighbourView = Readonly<{
  name: string;
  connected: boolean;
  /** How long the link has been in this state. */
  forMs: number;
  /** Changes of this cache that were not sent to the neighbour yet; null while the link is down. */
  behind: number | null;
  /**
   * `slices`: received from the neighbour. `current`: how many of them are kept up to date by
   * changes.
   */
  slices: number;
  current: number;
  message: string | null;
}>;

/**
 * `fresh`: the cache has every object of the shard, except changes within the lag. `partial`: some
 * objects are missing.
 */
export type ShardState = 'fresh' | 'partial' | 'held' | 'away' | 'removed';

export type ShardView = Readonly<{
  shard: string;
  via: string | null;
  state: ShardState;
  /** How long the shard's pusher has been connected or away; null if unknown. */
  forMs: number | null;
  /** `types`: the number of its types. `whole`: how many of them have all their objects here. */
  types: number;
  whole: number;
  objects: number;
  bytes: number;
  /** `lagMs`: the longest of its types; `changedAgoMs`: the shortest. Null if unknown. */
  lagMs: number | null;
  changedAgoMs: number | null;
}>;

export type TypeView = Readonly<{
  group: string;
  /** The preferred version. */
  version: string;
  resource: string;
  /** '' for a built-in type. */
  identity: string;
  kind: string;
  namespaced: boolean;
  /** The number of shards with such objects. */
  shards: number;
  objects: number;
  bytes: number;
}>;

export const activityNames = ['requests', 'written', 'events', 'refused'] as const;
export type ActivityName = (typeof activityNames)[number];

/** Rates per second, the oldest first. */
export type Activity = Readonly<{ intervalMs: number; perSecond: Readonly<Record<ActivityName, readonly number[]>> }>;
