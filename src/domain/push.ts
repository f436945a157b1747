import type { BucketSet } from './slices/buckets.js';
import type { CanonicalPath, ClusterName } from './cluster.js';
import type { Arrival, Claim, ShardState } from './claim.js';
import type { Refusal } from './errors.js';
import type { Key } from './key.js';
import type { Body } from './object.js';
import type { Resource } from './resource.js';
import type { Revision } from './revision.js';
import type { ShardName } from './shard.js';
import type { Neighbour } from './via.js';
import type { Slice } from './slice.js';

/**
 * Fences the writers of a shard: the cache that a new pusher connects to gives it a higher term
 * (claim.ts). A removal has a term too, so that an old process of a removed shard stays out. 0:
 * none.
 */
export type Term = number;

/**
 * Who sends a push. The committer fences the push by it, in queue order. A pusher of this cache has
 * its shard while the shard is local and has the pusher's term. A link has it while the shard's via
 * is the cache at its other end.
 */
export type Speaker = Readonly<{ kind: 'pusher'; term: Term } | { kind: 'link'; neighbour: Neighbour }>;

/**
 * What a pusher or a link asks on behalf of a shard, after admission. A push gives the desired
 * state whatever the former state was: it names no revision, and changes nothing that is already
 * so. Every push with a `by` is fenced.
 *
 *  acquire ── begin ── upsert … keep … ── end ── upsert, retract …
 *                                         └ end removes what was not synced since begin
 */
export type Push =
  /** A pusher connects for its shard. */
  | (Arrival & Readonly<{ kind: 'acquire' }>)
  /**
   * This cache's choice (claim.ts). If the shard changes its via, none of its slices counts as
   * synced; its objects stay.
   */
  | (Claim & Readonly<{ kind: 'claim' }>)
  /**
   * A sync of the whole slice begins. Until `end` the slice counts as not synced and as stale.
   * `cluster`: the sync covers only that logical cluster of the slice, and whether the slice counts
   * as synced does not change.
   */
  | Readonly<{ kind: 'begin'; slice: Slice; cluster?: ClusterName; by: Speaker }>
  /** The key has this body. */
  | Readonly<{ kind: 'upsert'; key: Key; body: Body; path: CanonicalPath | undefined; by: Speaker }>
  /** The key keeps its object, if it has one: the sync under way does not remove it. */
  | Readonly<{ kind: 'keep'; key: Key; by: Speaker }>
  /** The key has no object. */
  | Readonly<{ kind: 'retract'; key: Key; by: Speaker }>
  /**
   * The sync of the slice is complete. Objects that existed at `begin` and were not synced since
   * are removed, in steps.
   *
   * `filterHash`: the hash of what the link's policies let through of the slice; '' for a pusher. A
   * link may end a slice without a `begin` if it is current with that link filter. Then nothing is
   * removed, and the slice counts as synced.
   *
   * `buckets`: only these were sent, because the other buckets were compared and are equal. Objects
   * outside them stay.
   *
   * `term`: the term of the claim for which a link has sent everything; the known term if left out.
   * If the store knows a later one, the slice does not count as synced.
   *
   * `cluster`: the end of the sync that began for that logical cluster. Objects outside it stay,
   * and whether the slice counts as synced does not change.
   */
  | Readonly<{ kind: 'end'; slice: Slice; cluster?: ClusterName; by: Speaker; filterHash: string; buckets?: BucketSet; term?: Term }>
  /** Part of the slice was lost in transit: the slice counts as not synced and as stale. */
  | Readonly<{ kind: 'invalidate'; slice: Slice; by: Speaker }>
  /** Asks whether the slice has this digest. */
  | Readonly<{ kind: 'compare'; slice: Slice; by: Speaker; digest: string }>
  /**
   * A link opens. If its other end is another cache than before, its position is void, and its
   * slices are stale. If the neighbour is the parent, the shards that come by it then have no via.
   * No other child may use the id that a child last had.
   */
  | Readonly<{ kind: 'meet'; neighbour: Neighbour; cacheId: string }>
  /**
   * The cache at the other end has sent all that it had up to `position`, a resourceVersion of its
   * store. '': it cannot resume from what it sent, and no slice is current with it.
   */
  | Readonly<{ kind: 'reach'; neighbour: Neighbour; position: string }>
  /**
   * Forgets a child and its link; the shards that came by it have no via. Their objects stay. The
   * caller makes sure that no session of that child is open.
   */
  | Readonly<{ kind: 'leave'; neighbour: Neighbour }>
  /** Forgets a removed shard that holds no objects. For any other shard the outcome is `fenced`. */
  | Readonly<{ kind: 'forget'; shard: ShardName }>
  /**
   * Removes the objects of a shard, in steps. `fence`: the shard becomes a tombstone, with a term
   * above every former one. `through`: objects written after that revision stay. `onlyRemoved`:
   * does nothing if the shard is claimed again. The push comes from an operator, follows a claim
   * that removed the shard, or is for a shard that stays away. It is not fenced itself.
   */
  | Readonly<{ kind: 'clear'; shard: ShardName; fence: boolean; nowMs: number; through?: Revision; onlyRemoved?: boolean }>
  /**
   * Removes the objects of a type on every shard, in steps. Objects stay that were written after
   * the revision `through`, were synced meanwhile, or are being removed by another server of the
   * store. The slices count as never synced, so those without objects are forgotten. The server
   * itself sends this push; it is not fenced.
   */
  | Readonly<{ kind: 'drop'; resource: Resource; through: Revision }>
  /**
   * A plain writer has been quiet for long enough: its writes count as synced, while the shard is
   * plain and local.
   */
  | Readonly<{ kind: 'assume'; shard: ShardName }>;

/** The outcome of a push; durable and published. */
export type PushOutcome =
  | Readonly<{ kind: 'written'; revision: Revision }>
  /** The state was so already, or the push is of a kind that changes no object. */
  | Readonly<{ kind: 'unchanged' }>
  /** The pusher that connected has the shard, with this term. */
  | Readonly<{ kind: 'acquired'; term: Term }>
  /**
   * Another pusher or via has the shard, or it was removed. Nothing was done. `holder`: the known
   * state of the shard; undefined if it is unknown.
   */
  | Readonly<{ kind: 'fenced'; holder: ShardState | undefined }>
  /** An `end` whose `begin` was lost with a failed commit. */
  | Readonly<{ kind: 'unbegun' }>
  /**
   * A `compare` found another digest; `isCurrent`: whether the slice was current with its link at
   * that time.
   */
  | Readonly<{ kind: 'differs'; digest: string; isCurrent: boolean }>
  /** A `meet` with a cache id that another child uses. */
  | Readonly<{ kind: 'bound'; name: string }>
  /** A `meet` of a new child while `linksMax` are known. */
  | Readonly<{ kind: 'full' }>
  /** An `end`, a `clear` or a `drop` is done; that many objects were removed. */
  | Readonly<{ kind: 'swept'; removed: number }>
  /**
   * The outcome is unknown: the disk or etcd has not confirmed the push, or the store is closing.
   *
   * On etcd the push may be stored all the same, and so may other pushes of its lane with this
   * outcome, in any order. Of a sweep, some objects may be removed. The caller asks again, or reads
   * the published state. The lane's further pushes on behalf of a shard, and further `reach`, get
   * this outcome too, until an `acquire` or a `meet`.
   */
  | Readonly<{ kind: 'unavailable'; refusal: Refusal }>;

/** What the store knows of a slice that holds objects or was ever synced. */
export type SliceState = Readonly<{
  slice: Slice;
  objects: number;
  /** The total size of its bodies. */
  bytes: number;
  /** The digest of its objects, as `formatDigest` writes it. */
  digest: string;
  /** The time of its last change, in milliseconds since 1970; 0 if it never changed. */
  changedMs: number;
  /** The term that synced the slice in full and has sent all changes since; 0 if none has. */
  syncedTerm: Term;
  /** Whether the slice was ever synced in full. */
  everSynced: boolean;
  /**
   * The hash of the link filter, while the slice is current with its link's position; otherwise ''.
   */
  filterHash: string;
  /**
   * The link over which objects or syncs of the slice last came, whether it is current or not; ''
   * if none.
   */
  cameOver: Neighbour | '';
}>;

/**
 * What the store knows of a link. `cacheId`: the cache at its other end. `position`: up to where
 * that cache has sent everything; '' if nowhere yet.
 */
export type LinkState = Readonly<{ neighbour: Neighbour; cacheId: string; position: string }>;

/** Bounds the number of children, because a cache remembers each child that ever connected. */
export const linksMax = 10_000;

/** The published state of a forgotten link. */
export function leftLink(neighbour: Neighbour): LinkState {
  return { neighbour, cacheId: '', position: '' };
}

export function hasLeft({ cacheId }: LinkState): boolean {
  return cacheId === '';
}

/**
 * Shards whose removal was interrupted, sorted, so that a start does the same whatever the engine's
 * order.
 */
export function halfRemoved(shards: Iterable<ShardState>, slices: Iterable<SliceState>): readonly ShardName[] {
  const holding = new Set([...slices].filter(({ objects }) => objects > 0).map(({ slice }) => slice.shard));
  const half = [...shards].filter(({ shard, removed }) => removed && holding.has(shard));
  return half.map(({ shard }) => shard).toSorted();
}

/** The slice's `cameOver` after a push of this speaker. */
export function linkOf(by: Speaker): Neighbour | '' {
  return by.kind === 'link' ? by.neighbour : '';
}

/** Whether nothing is left to report about a slice. */
export function isForgotten({ objects, syncedTerm, everSynced }: Pick<SliceState, 'objects' | 'syncedTerm' | 'everSynced'>): boolean {
  return objects === 0 && syncedTerm === 0 && !everSynced;
}
