import type { BucketSet } from './buckets.js';
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
 * Fences the writers of a shard: the cache that a new one comes to gives it a higher term (claim.ts). A removal has a term too, so that
 * an old process of a removed shard stays out. 0: none.
 */
export type Term = number;

/**
 * Who sends a push, which is what fences it, in queue order: a pusher of this cache has its shard while that is local and of its
 * term; a link while the shard's via is the cache at its other end.
 */
export type Speaker = Readonly<{ kind: 'pusher'; term: Term } | { kind: 'link'; neighbour: Neighbour }>;

/**
 * What a pusher or a link asks in the name of a shard, already admitted. It gives the state of things, whatever was there before: it names no
 * revision, and changes nothing that is so already. All that have a `by` are fenced.
 *
 *   acquire ── begin ── upsert … keep … ── end ── upsert, retract …             end removes what was not synced since begin
 */
export type Push =
  /** A pusher comes for its shard. */
  | (Arrival & Readonly<{ kind: 'acquire' }>)
  /** This cache's choice (claim.ts). No slice of a shard that changes its via counts as synced; its objects stay. */
  | (Claim & Readonly<{ kind: 'claim' }>)
  /**
   * The slice is about to be synced as a whole. Until `end` it counts as not synced and as stale. `cluster`: only what it has of that logical
   * cluster; whether the slice counts as synced stays as it is.
   */
  | Readonly<{ kind: 'begin'; slice: Slice; cluster?: ClusterName; by: Speaker }>
  /** The key holds this. */
  | Readonly<{ kind: 'upsert'; key: Key; body: Body; path: CanonicalPath | undefined; by: Speaker }>
  /** The key holds what it did, or nothing: within a sync it is not among the swept. */
  | Readonly<{ kind: 'keep'; key: Key; by: Speaker }>
  /** The key holds nothing. */
  | Readonly<{ kind: 'retract'; key: Key; by: Speaker }>
  /**
   * Everything of the slice was synced. What was there at `begin` and was not synced since is removed, in steps. `filterHash` is of what the
   * link's policies let through of the slice, '' for a pusher. A link may end a slice that is current with that link filter without a begin:
   * then nothing is removed, and it counts as synced. `buckets`: only these were sent, because the others were compared and are the same; nothing
   * else is removed. `term`: of the claim for which a link has sent everything. If the store knows a later one by now,
   * the slice does not count as synced by that. Without it, the known term. `cluster`: the end of what was begun of that logical cluster; nothing
   * else is removed, and whether the slice counts as synced stays as it is.
   */
  | Readonly<{ kind: 'end'; slice: Slice; cluster?: ClusterName; by: Speaker; filterHash: string; buckets?: BucketSet; term?: Term }>
  /** Something of the slice was lost on the way: it counts as not synced and as stale. */
  | Readonly<{ kind: 'invalidate'; slice: Slice; by: Speaker }>
  /** Whether the slice has this digest. */
  | Readonly<{ kind: 'compare'; slice: Slice; by: Speaker; digest: string }>
  /**
   * A link opens. If its other end is another cache than before, its position is void, and its slices are stale; if that is
   * the parent, the shards that come by it are nobody's. No other child may use the id that a child came with last.
   */
  | Readonly<{ kind: 'meet'; neighbour: Neighbour; cacheId: string }>
  /**
   * The cache at the other end has sent all it had to send up to its `position`, a resourceVersion of its store. '': it
   * cannot resume from what it sent, and no slice is current with it any more.
   */
  | Readonly<{ kind: 'reach'; neighbour: Neighbour; position: string }>
  /**
   * The child is gone for good: nothing of its link is kept, and the shards that came by it are nobody's. Their objects stay. Whoever asks
   * for this makes sure that no session of that child is open.
   */
  | Readonly<{ kind: 'leave'; neighbour: Neighbour }>
  /** Forgets a shard that was removed and holds nothing; for one that is not so, or is unknown, it is fenced. */
  | Readonly<{ kind: 'forget'; shard: ShardName }>
  /**
   * Removes what a shard holds, in steps. `fence`: it is a tombstone from now on, with a term above all it had.
   * `through`: what is written after that revision stays. `onlyRemoved`: nothing is done if somebody has the shard by now. It comes from an operator,
   * follows a claim that removed the shard, or is for one that stays away, and is not fenced itself.
   */
  | Readonly<{ kind: 'clear'; shard: ShardName; fence: boolean; nowMs: number; through?: Revision; onlyRemoved?: boolean }>
  /**
   * Removes what every shard holds of a type, in steps, but for what is written after the revision `through`, or synced meanwhile, or what another server of the
   * store removes. Its slices count as never synced, so those that then hold nothing are forgotten. It comes from the server itself and is not fenced.
   */
  | Readonly<{ kind: 'drop'; resource: Resource; through: Revision }>
  /** A plain writer has been quiet for long enough: what it wrote counts as synced, while the shard is plain and local. */
  | Readonly<{ kind: 'assume'; shard: ShardName }>;

/** What became of a push; durable and published. */
export type PushOutcome =
  | Readonly<{ kind: 'written'; revision: Revision }>
  /** It was so already, or the push is of a kind that changes no object. */
  | Readonly<{ kind: 'unchanged' }>
  /** The pusher that came for the shard has it, in this term. */
  | Readonly<{ kind: 'acquired'; term: Term }>
  /** Another has the shard, or it was removed. Nothing was done. `holder` is what is known of it, if anything is. */
  | Readonly<{ kind: 'fenced'; holder: ShardState | undefined }>
  /** An `end` without its `begin`, which a failed commit took along. */
  | Readonly<{ kind: 'unbegun' }>
  /** A `compare` found another digest, and whether the slice was current with its link then. */
  | Readonly<{ kind: 'differs'; digest: string; isCurrent: boolean }>
  /** A `meet` with a cache id that another child uses. */
  | Readonly<{ kind: 'bound'; name: string }>
  /** A `meet` of a new child while `linksMax` are known. */
  | Readonly<{ kind: 'full' }>
  /** An `end`, a `clear` or a `drop` is done; that many objects were removed. */
  | Readonly<{ kind: 'swept'; removed: number }>
  /**
   * Nobody knows: the disk or etcd has not taken it, or the store is closing. On etcd it may be stored all the same, and so may others of its lane that were
   * answered so, whatever their order; of a sweep some may be removed. Whoever has asked asks again, or looks at what is published. What the lane gives
   * behind it in the name of a shard, or as a `reach`, is answered so as well until an `acquire` or a `meet`.
   */
  | Readonly<{ kind: 'unavailable'; refusal: Refusal }>;

/** What the store knows of a slice that holds objects or was ever synced. */
export type SliceState = Readonly<{
  slice: Slice;
  objects: number;
  /** Of their bodies. */
  bytes: number;
  /** Of its objects, as `formatDigest` has it. */
  digest: string;
  /** When it changed last, in milliseconds since 1970; 0 when it never did. */
  changedMs: number;
  /** The term that synced it in full and has sent all changes since; 0 when none has. */
  syncedTerm: Term;
  /** Whether it was ever synced in full. */
  everSynced: boolean;
  /** The hash of the filter of the link it comes over, while it is current with that link's position; '' when it is not. */
  filterHash: string;
  /** The link that has brought something of it last, whether it is current or not; '' for none. */
  cameOver: Neighbour | '';
}>;

/** What the store knows of a link: the cache at its other end, and the position up to which that has sent everything ('': none yet). */
export type LinkState = Readonly<{ neighbour: Neighbour; cacheId: string; position: string }>;

/** A cache remembers each child that ever came, so no certificate may name as many as it likes. */
export const linksMax = 10_000;

/** What is published of a link that is forgotten. */
export function leftLink(neighbour: Neighbour): LinkState {
  return { neighbour, cacheId: '', position: '' };
}

export function hasLeft({ cacheId }: LinkState): boolean {
  return cacheId === '';
}

/** Shards whose removal was cut short, by name: what a start does must not depend on how an engine keeps them. */
export function halfRemoved(shards: Iterable<ShardState>, slices: Iterable<SliceState>): readonly ShardName[] {
  const holding = new Set([...slices].filter(({ objects }) => objects > 0).map(({ slice }) => slice.shard));
  const half = [...shards].filter(({ shard, removed }) => removed && holding.has(shard));
  return half.map(({ shard }) => shard).toSorted();
}

/** What a slice's `cameOver` is after something that this speaker brought. */
export function linkOf(by: Speaker): Neighbour | '' {
  return by.kind === 'link' ? by.neighbour : '';
}

/** Whether nothing is left to report on a slice. */
export function isForgotten({ objects, syncedTerm, everSynced }: Pick<SliceState, 'objects' | 'syncedTerm' | 'everSynced'>): boolean {
  return objects === 0 && syncedTerm === 0 && !everSynced;
}
