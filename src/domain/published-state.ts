import type { ShardState } from './claim.js';
import type { Subscription } from './ports.js';
import type { LinkState, SliceState } from './push.js';
import type { Resource } from './resource.js';
import type { ShardName } from './shard.js';
import type { Slice } from './slice.js';
import type { Neighbour } from './via.js';

export type TypeOrIdentity = Pick<Resource, 'group' | 'resource'> & Readonly<{ identity: string | undefined }>;

/**
 * The shards, slices and links that a commit changed. A removed entry has the form that
 * `unknownShard`, `isForgotten` or `leftLink` defines. `invalidated`: slices in which another
 * server of the store has removed or changed objects. A sync of them at this server must begin
 * again.
 */
export type StateChange = Readonly<{
  shards: readonly ShardState[];
  slices: readonly SliceState[];
  links: readonly LinkState[];
  invalidated: readonly Slice[];
}>;

/**
 * The shards, slices and links at the published revision. Only a commit changes this state, in the
 * tick that publishes the commit, and before followers and subscribers are called. The iterables
 * are live views, not copies: callers read them to the end before they await anything.
 */
export interface PublishedState {
  /** Every shard that was ever claimed, written to or removed. */
  readonly shards: Iterable<ShardState>;
  readonly shardCount: number;
  /** Every slice that holds objects or was ever synced. */
  readonly slices: Iterable<SliceState>;
  /** Every link that ever opened and was not forgotten. */
  readonly links: Iterable<LinkState>;
  /** The names of `shards`, and of every shard that holds objects. */
  readonly names: ReadonlySet<ShardName>;
  readonly changes: number;
  hasName(shard: ShardName): boolean;
  shard(shard: ShardName): ShardState | undefined;
  slice(slice: Slice): SliceState | undefined;
  link(neighbour: Neighbour): LinkState | undefined;
  slicesOf(shard: ShardName): Iterable<SliceState>;
  /**
   * The slices of a type by shard: one map for each identity, or only that of the given identity.
   */
  slicesOfType(type: TypeOrIdentity): readonly ReadonlyMap<ShardName, SliceState>[];
  /**
   * Whether the shard's present term synced the slice in full, so that the cache has all of it. A
   * plain writer sends no syncs. Once its writes count as synced, slices that it never wrote count
   * as synced too.
   */
  isSynced(slice: Slice): boolean;
  /** Whether the writes of plain writers to the shard count as synced. */
  isPlainSynced(shard: ShardName): boolean;
  /** Calls the listener with each commit's changes to this state, before those to objects. */
  follow(listener: (change: StateChange) => void): Subscription;
}
