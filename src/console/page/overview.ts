/** What GET /console/overview answers: the cache as the page shows it. Types alone, because the page knows nothing else of the server. */
export type Overview = Readonly<{
  cache: Readonly<{ id: string; version: string; ready: boolean; resourceVersion: string }>;
  /** Null: the cache has none to speak of. */
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
  /** How many caches are above this one; null when that is not known. */
  hops: number | null;
  complete: boolean;
  parent: NeighbourView | null;
  children: readonly NeighbourView[];
}>;

export type NeighbourView = Readonly<{
  name: string;
  connected: boolean;
  /** In this state. */
  forMs: number;
  /** Changes of this cache that were not sent there yet; null while the link is down. */
  behind: number | null;
  /** Slices that come from there, and how many of them changes alone keep up. */
  slices: number;
  current: number;
  message: string | null;
}>;

/** `fresh`: everything that the shard has is here, but for the lag; `partial`: something of it is not. */
export type ShardState = 'fresh' | 'partial' | 'held' | 'away' | 'removed';

export type ShardView = Readonly<{
  shard: string;
  via: string | null;
  state: ShardState;
  /** Since when its pusher is there, or away; null when that is not known. */
  forMs: number | null;
  /** Types of it, and those of them whose objects are all here. */
  types: number;
  whole: number;
  objects: number;
  bytes: number;
  /** The longest and the shortest of its types; null when none is known. */
  lagMs: number | null;
  changedAgoMs: number | null;
}>;

export type TypeView = Readonly<{
  group: string;
  /** The preferred one. */
  version: string;
  resource: string;
  /** '' of a built-in type. */
  identity: string;
  kind: string;
  namespaced: boolean;
  /** That have any. */
  shards: number;
  objects: number;
  bytes: number;
}>;

export const activityNames = ['requests', 'written', 'events', 'refused'] as const;
export type ActivityName = (typeof activityNames)[number];

/** Rates by the second, the oldest first. */
export type Activity = Readonly<{ intervalMs: number; perSecond: Readonly<Record<ActivityName, readonly number[]>> }>;
