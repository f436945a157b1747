import type { ShardState } from './claim.js';
import type { Subscription } from './ports.js';
import type { LinkState, SliceState } from './push.js';
import type { Resource } from './resource.js';
import type { ShardName } from './shard.js';
import type { Slice } from './slice.js';
import type { Neighbour } from './via.js';

/** A type, or that of one export. */
export type TypeOfSlices = Pick<Resource, 'group' | 'resource'> & Readonly<{ identity: string | undefined }>;

/**
 * What a commit has changed of shards, slices and links: what is no more comes as `unknownShard`, `isForgotten` and `leftLink` have it. `invalidated`: slices of
 * which another server of the store has removed or changed something, so that whoever syncs them here has to do so again.
 */
export type StateChange = Readonly<{
  shards: readonly ShardState[];
  slices: readonly SliceState[];
  links: readonly LinkState[];
  invalidated: readonly Slice[];
}>;

/**
 * What is known of shards, slices and links at the published revision. It changes by a commit alone, in the tick in which that is published, and before
 * followers and subscribers hear of it. Its iterables show that one state, not a copy: they are read to their end before anything is awaited.
 */
export interface PublishedState {
  /** Every shard that was ever claimed, written to or removed, and not forgotten. */
  readonly shards: Iterable<ShardState>;
  readonly shardCount: number;
  /** Every slice that holds objects or was ever synced. */
  readonly slices: Iterable<SliceState>;
  /** Every link that ever opened, and has not left. */
  readonly links: Iterable<LinkState>;
  /** Of `shards`, and of what holds something. */
  readonly names: ReadonlySet<ShardName>;
  /** How often something about a shard has changed. */
  readonly changes: number;
  hasName(shard: ShardName): boolean;
  shard(shard: ShardName): ShardState | undefined;
  slice(slice: Slice): SliceState | undefined;
  link(neighbour: Neighbour): LinkState | undefined;
  slicesOf(shard: ShardName): Iterable<SliceState>;
  /** The slices of a type by shard, of each of its identities, or of that one. */
  slicesOfType(type: TypeOfSlices): readonly ReadonlyMap<ShardName, SliceState>[];
  /**
   * Whether all of the slice is here: the shard's present term synced it in full. A plain writer syncs nothing; once what it
   * wrote counts as synced, so does every type of which it wrote nothing.
   */
  isSynced(slice: Slice): boolean;
  /** Whether what plain writers wrote to the shard counts as synced. */
  isPlainSynced(shard: ShardName): boolean;
  /** Reports what a commit has changed, before its changes of objects. */
  follow(listener: (change: StateChange) => void): Subscription;
}
