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
 * Orders the pushers of a shard. The cache that a new pusher connects to gives it a higher term,
 * which shuts out all former pushers (claim.ts). A removal has a term too, so that an old process
 * of a removed shard stays out. 0: none.
 */
export type Term = number;

/**
 * The sender of a push. A pusher holds its shard while the shard is local and in that pusher's
 * term. A link holds a shard while the shard's via is the neighbour at the link's other end.
 */
export type Speaker = Readonly<{ kind: 'pusher'; term: Term } | { kind: 'link'; neighbour: Neighbour }>;

/**
 * A request of a pusher, a link or this server to the committer, after admission. A push gives the
 * desired state, whatever the former one: it names no revision, and changes nothing if that state
 * is stored already. For every push with a `by`, the committer checks in queue order that the
 * speaker holds the shard; otherwise the outcome is `fenced`.
 *
 *  acquire ── begin ── upsert … keep … ── end ── upsert, retract …
 *                                         └ end removes what was not synced since begin
 */
export type Push =
  | (Arrival & Readonly<{ kind: 'acquire' }>)
  /**
   * This cache's choice of a shard's origin and via (claim.ts). If the via changes, none of the
   * shard's slices counts as synced; its objects stay.
   */
  | (Claim & Readonly<{ kind: 'claim' }>)
  /**
   * A sync of the whole slice begins. Until `end` the slice counts as not synced and as stale.
   * `cluster`: the sync covers only that logical cluster, and whether the slice counts as synced
   * does not change.
   */
  | Readonly<{ kind: 'begin'; slice: Slice; cluster?: ClusterName; by: Speaker }>
  /** The key has this body. */
  | Readonly<{ kind: 'upsert'; key: Key; body: Body; path: CanonicalPath | undefined; by: Speaker }>
  /** The key keeps its object, if it has one, in the sync under way. */
  | Readonly<{ kind: 'keep'; key: Key; by: Speaker }>
  /** The key has no object. */
  | Readonly<{ kind: 'retract'; key: Key; by: Speaker }>
  /**
   * The sync of the slice is complete. The committer removes, in steps, objects that existed at
   * `begin` and were not synced since.
   *
   * `filterHash`: the hash of the link filter, as far as it concerns the slice; '' for a pusher. A
   * link may end a slice without a `begin` if the slice is current under that link filter. Then
   * nothing is removed, and the slice counts as synced.
   *
   * `buckets`: only objects of these buckets were sent, because the other buckets were compared and
   * are equal. Objects in the others stay.
   *
   * `term`: the term of the claim for which a link has sent everything; by default the known term.
   * If the store knows a later one, the slice does not count as synced.
   *
   * `cluster`: the end of the sync of that logical cluster. Objects outside it stay, and whether
   * the slice counts as synced does not change.
   */
  | Readonly<{ kind: 'end'; slice: Slice; cluster?: ClusterName; by: Speaker; filterHash: string; buckets?: BucketSet; term?: Term }>
  /** Part of the slice was lost in transit: the slice counts as not synced and as stale. */
  | Readonly<{ kind: 'invalidate'; slice: Slice; by: Speaker }>
  | Readonly<{ kind: 'compare'; slice: Slice; by: Speaker; digest: string }>
  /**
   * A link opens. If its other end is another cache than before, the link's position is void, and
   * its slices are stale. If the other end is the parent, the shards whose via is the parent then
   * have no via. A child may not use the cache id that another child last had.
   */
  | Readonly<{ kind: 'meet'; neighbour: Neighbour; cacheId: string }>
  /**
   * The cache at the other end has sent all that it had up to `position`, a resourceVersion of that
   * cache's store. '': the other end cannot resume, so no slice is current with the link.
   */
  | Readonly<{ kind: 'reach'; neighbour: Neighbour; position: string }>
  /**
   * Forgets a child and its link. The shards whose via is the child then have no via; their objects
   * stay. The caller makes sure that no session of that child is open.
   */
  | Readonly<{ kind: 'leave'; neighbour: Neighbour }>
  /**
   * Removes the objects of a shard, in steps. `fence`: the shard becomes a tombstone, with a term
   * above every former one. `through`: objects written after that revision stay. `onlyRemoved`:
   * does nothing if the shard is claimed again. No speaker is checked, because an operator, a claim
   * or `ShardRemoval` requests it.
   */
  | Readonly<{ kind: 'clear'; shard: ShardName; fence: boolean; nowMs: number; through?: Revision; onlyRemoved?: boolean }>
  /**
   * Removes the objects of a type on every shard, in steps. Objects stay that were written after
   * the revision `through`, were synced meanwhile, or are being removed by another server of the
   * store. The slices count as never synced, so those without objects are forgotten. No speaker is
   * checked: the server itself sends this push.
   */
  | Readonly<{ kind: 'drop'; resource: Resource; through: Revision }>
  /**
   * A plain writer has been quiet for long enough: its writes count as synced, if the shard is
   * plain and local.
   */
  | Readonly<{ kind: 'assume'; shard: ShardName }>;

/** The outcome of a push; durable and published. */
export type PushOutcome =
  | Readonly<{ kind: 'written'; revision: Revision }>
  /** The desired state was stored already, or the push is of a kind that changes no object. */
  | Readonly<{ kind: 'unchanged' }>
  /** The pusher that connected has the shard, with this term. */
  | Readonly<{ kind: 'acquired'; term: Term }>
  /**
   * Another pusher or via has the shard, or the shard was removed. Nothing was done. `holder`: the
   * known state of the shard; undefined if it is unknown.
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
  /** An `end`, a `clear` or a `drop` is done, and has removed that many objects. */
  | Readonly<{ kind: 'swept'; removed: number }>
  /**
   * The outcome is unknown: the disk or etcd has not confirmed the push, or the store is closing.
   *
   * On etcd, each push of a lane that has this outcome may be stored all the same, in any order. A
   * sweep may have removed some objects. The caller retries, or reads the published state. After
   * such an outcome, the lane's pushes with a `by`, and every `reach`, get this outcome until an
   * `acquire` or a `meet`.
   */
  | Readonly<{ kind: 'unavailable'; refusal: Refusal }>;

/** What the store knows of a slice that holds objects or was ever synced. */
export type SliceState = Readonly<{
  slice: Slice;
  objects: number;
  bytes: number;
  /** The text that `formatDigest` writes. */
  digest: string;
  /** When the slice last changed, in milliseconds since 1970; 0 if it never changed. */
  changedMs: number;
  /** The term that synced the slice in full and has sent all changes since; 0 if none has. */
  syncedTerm: Term;
  everSynced: boolean;
  /**
   * The hash of the link filter, while the slice is current with its link's position; otherwise ''.
   */
  filterHash: string;
  /**
   * The link over which objects or syncs of the slice last came, even if the slice is not current;
   * '' if none.
   */
  cameOver: Neighbour | '';
}>;

/**
 * What the store knows of a link. `cacheId`: the cache at the other end. `position`: that cache has
 * sent everything up to here; '' if nothing yet.
 */
export type LinkState = Readonly<{ neighbour: Neighbour; cacheId: string; position: string }>;

/** Bounded because a cache remembers each child that ever connected. */
export const linksMax = 10_000;

/** The published state of a forgotten link. */
export function leftLink(neighbour: Neighbour): LinkState {
  return { neighbour, cacheId: '', position: '' };
}

export function hasLeft({ cacheId }: LinkState): boolean {
  return cacheId === '';
}

/**
 * Shards whose removal was interrupted. They are sorted, so that both engines resume in the same
 * order at a start.
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
