/**
 * What crosses a websocket: frames, each one msgpack array, one per websocket message. A closed union with one reader
 * (read-frame.ts) and one writer (write-frame.ts).
 *
 *   frame    = [1,  protocol, role, name, process, term, takesOver, route, agent, credit | nil,
 *                 limits | nil, position?]                                                     hello
 *            | [2,  protocol, cacheId, epoch, term, credit, limits]                                welcome
 *            | [3,  sequence, slice, version, objects, position?]                                  put
 *            | [4,  sequence, slice, keys, position?]                                              delete
 *            | [5,  sequence, slice, revision, compares?]                                          begin
 *            | [6,  sequence, slice, revision, count, filterHash, buckets?, term?]                 end
 *            | [7,  slice, reason]                                                                 resync
 *            | [8,  sequence, position]                                                            progress
 *            | [9,  shard, term, process, removed, origin, path, reached, isYours, held]           claim
 *            | [10, route]                                                                         route
 *            | [11, up, down]                                                                      policy
 *            | [12, sequence, slice, value]                                                        digest
 *            | [13, sequence, credit, position?]                                                   ack
 *            | [14, sequence, reason, message]                                                     refuse
 *            | [15, freshness, withdrawn]                                                          status
 *            | [16, reason, message, retryAfterMs | nil]                                           bye
 *            | [17, position, held, isLast]                                                        resume
 *            | [18, number]                                                                        heartbeat
 *            | [19, sequence, freshness, heartbeat, isAll, isComplete]                             report
 *            | [20, slice, sequence, digests]                                                      summary
 *            | [21]                                                                                standby
 *            | [22, slices, withdrawn, isAll]                                                      types
 *            | [23, slice, keys]                                                                   swept
 *            | [24, sequence, slice, cluster]                                                      clusterBegin
 *            | [25, sequence, slice, cluster, count]                                               clusterEnd
 *            | [26, sequence, slice, cluster]                                                      clusterKeep
 *            | [27, slices]                                                                        synced
 *   slice    = [shard, group, resource, identity]      slices, withdrawn = [slice, …]
 *   objects  = [cluster, namespace, name, sourceVersion, body | nil, …]     five elements each     body: JSON text as bin; nil: keep
 *   keys     = [cluster, namespace, name, …]                                three elements each
 *   held     = [[slice, filterHash, syncedTerm], …]
 *   credit   = [mutations, bytes] limits = [frameBytes, frameMutations, bodyBytes]
 *   freshness = [[slice, connected, synced, lagMs, whole], …]
 *
 * Roles. A shard pushes its own objects: hello; synced, welcome; then put, delete, begin, end, clusterBegin, clusterEnd, clusterKeep, status one way and ack, refuse,
 * resync the other. Caches do both, both ways, for all shards that cross the link (tier/); claim, route, policy, progress, digest, resume, summary,
 * swept, heartbeat and report are theirs alone, and so are the credit and the limits in hello; clusterBegin, clusterEnd, clusterKeep, status,
 * standby, synced and types are a shard's.
 *
 * Sequence: mutations are numbered from 1 in each connection and direction. A put or delete frame carries the number of its first
 * one, and they count on from there; begin, end, clusterBegin, clusterEnd, clusterKeep, progress, digest and report are one each. An ack or
 * refuse names one of these numbers.
 *
 * A position is a resourceVersion of the sending cache's store. Everything that the sender held up to there, and that crosses, was sent before
 * the progress, or with the put or delete, that names it. The receiver stores it together with what it came with. A digest holds for what was
 * sent before it. So does a report of freshness. It also answers a heartbeat: everything that the sender held when heartbeat NUMBER came was
 * sent before the report that names NUMBER; 0 answers none. This needs nothing but order.
 *
 * The receiver answers a begin that compares with a summary of what it holds then, under the number of the begin: SHA-256 digests of 32 bytes each, of up
 * to 256 buckets of keys (domain/summary.ts, domain/buckets.ts), or none where it has none to give. The sender sends the objects of the buckets that differ
 * from its own, and an end that names these. The others are the same; only of these is anything removed.
 *
 * From clusterBegin to clusterEnd come all objects of one logical cluster of a slice, among others; at its end those that did not come are removed,
 * of that logical cluster alone. Several may be under way at a time, with and without a begin of the whole slice before them. A begin voids those
 * before it. `count` is of objects of that logical cluster put since its clusterBegin. What breaks one off has the slice synced as a whole.
 * The end of a slice removes nothing of a logical cluster that is under way, and nothing of one that the sender cannot read and has said to keep: what it
 * has is removed at its own clusterEnd. With the last of these ends the slice counts as synced.
 *
 * The swept are keys that a sync did not name, and that the receiver has removed since: the sender may have lost them.
 *
 * The position of an ack is one of the receiving cache's store, at or above everything that was acknowledged. A shard sends the last
 * one back in its hello. A cache whose store does not know it has lost what it acknowledged, and names no slice as synced.
 *
 * Types names slices that the shard has, each once in a connection and before its begin, and names those withdrawn that it no longer has. While the
 * last one says that these are all, the cache removes what it holds of any other slice of that shard. A pusher that does not know, or no longer
 * knows, says that they are not, and nothing is removed. Without a types there is none that says so.
 *
 * Liveness is the websocket's own ping and pong; there are no frames for it.
 *
 * Ladder. Frames are additive: a new member goes to the end, and an older reader ignores it. What an older reader would
 * misread is a new version, negotiated in hello, with golden bytes kept for the old one.
 *   v1: all of the above. A reader that ignores the position of a put or delete learns a later one with the next progress. A shard that
 *       ignores the position of an ack resyncs everything whenever it connects. A cache that knows no clusterBegin ends the session (bye protocol)
 *       before it removes anything.
 */
import type { BucketSet } from '../domain/buckets.js';
import type { Offer } from '../domain/claim.js';
import type { ClusterName } from '../domain/cluster.js';
import type { Term } from '../domain/push.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { ByeReason } from './bye.js';

export const protocolVersion = 1;

export type FrameOf<Kind extends Frame['kind']> = Extract<Frame, { kind: Kind }>;

/** How much may be sent and not yet acknowledged. */
export type Credit = Readonly<{ mutations: number; bytes: number }>;

/** What the receiving end accepts at most. */
export type FrameLimits = Readonly<{ frameBytesMax: number; frameMutationsMax: number; bodyBytesMax: number }>;

/**
 * What a cache holds of a slice that comes over this link: the link filter it is current with ('' when it must be resynced), and
 * the term that synced it, 0 when none has.
 */
export type HeldSlice = Readonly<{ slice: Slice; filterHash: string; syncedTerm: Term }>;

/** An object as it is pushed. Its key's texts are as they came; whoever admits it parses them. */
export type PushedObject = Readonly<{
  cluster: string;
  namespace: string;
  name: string;
  /** The source's own version of it: sent, never compared. */
  sourceVersion: string;
  /** JSON text. Undefined: whatever the receiver holds under this key is kept. */
  body: Uint8Array | undefined;
}>;

export type PushedKey = Readonly<{ cluster: string; namespace: string; name: string }>;

/**
 * What a sender knows of the freshness of a slice: whether its source is connected, whether it is synced there (`synced`), and how old
 * the oldest change is that is not acknowledged. `whole`: the receiver has, or will have with what comes before this, every object that the shard has of
 * the slice; nothing was refused on the way, and no policy keeps anything back.
 */
export type SliceFreshness = Readonly<{ slice: Slice; connected: boolean; synced: boolean; lagMs: number; whole: boolean }>;

/** What a reporter knows of a slice, beside whether it is synced. */
export type SliceReport = Omit<SliceFreshness, 'slice' | 'synced'>;

export type Frame =
  | Readonly<{
      kind: 'hello';
      protocol: number;
      role: 'shard' | 'cache';
      /** Of the shard, or of the cache: what its certificate says. */
      name: string;
      /** Of a shard: an id that its process has made up for itself; '' from a cache. */
      process: string;
      /** Of a shard: the last term of its process, 0 before the first. Of a cache: when its process started, in milliseconds since 1970. */
      term: Term;
      /** Of a shard: it takes over instead of waiting as a standby. */
      takesOver: boolean;
      /** Ids of caches from this one to the root, its own first; empty for a shard. */
      route: readonly string[];
      /** The sender's program and version, for the log. */
      agent: string;
      /** Of a cache: credit for what comes down to it. */
      credit: Credit | undefined;
      limits: FrameLimits | undefined;
      /** Of a shard: the position of its last ack. */
      position?: string;
    }>
  | Readonly<{
      kind: 'welcome';
      protocol: number;
      cacheId: string;
      epoch: number;
      /** The term of the shard's process from now on, which its next hello names; 0 to a cache. */
      term: Term;
      credit: Credit;
      limits: FrameLimits;
    }>
  | Readonly<{ kind: 'put'; sequence: number; slice: Slice; version: string; objects: readonly PushedObject[]; position?: string }>
  | Readonly<{ kind: 'delete'; sequence: number; slice: Slice; keys: readonly PushedKey[]; position?: string }>
  | Readonly<{ kind: 'begin'; sequence: number; slice: Slice; revision: string; compares?: boolean }>
  /**
   * `count`: objects put since begin. `filterHash`: of what the policies of both caches let through of the slice; '' from a shard. Without a
   * begin before it, the slice is current with that link filter, and all of it synced. `buckets`: those whose objects were sent; without it, all.
   * `term`: of the shard's claim for which a cache sends this; claims wait for no credit, so a later one may have overtaken it.
   */
  | Readonly<{
      kind: 'end';
      sequence: number;
      slice: Slice;
      revision: string;
      count: number;
      filterHash: string;
      buckets?: BucketSet;
      term?: Term;
    }>
  /** All that the slice has of one logical cluster follows, up to its clusterEnd. */
  | Readonly<{ kind: 'clusterBegin'; sequence: number; slice: Slice; cluster: ClusterName }>
  | Readonly<{ kind: 'clusterEnd'; sequence: number; slice: Slice; cluster: ClusterName; count: number }>
  /** The end of the slice that follows removes nothing of the logical cluster. */
  | Readonly<{ kind: 'clusterKeep'; sequence: number; slice: Slice; cluster: ClusterName }>
  | Readonly<{ kind: 'resync'; slice: Slice; reason: string }>
  | Readonly<{ kind: 'progress'; sequence: number; position: string }>
  /**
   * What the sender has chosen for a shard (domain/claim.ts). `path`: ids of caches from the origin to the sender, as far as it knows. `isYours`: the
   * sender has the shard from the reader of this, which is to send it.
   */
  | (Offer & Readonly<{ kind: 'claim'; shard: ShardName; isYours: boolean }>)
  /** From a parent: its own id and those above it. */
  | Readonly<{ kind: 'route'; route: readonly string[] }>
  /** What this end lets through, both ways: the rules as JSON text (domain/link-policy.ts). */
  | Readonly<{ kind: 'policy'; up: string; down: string }>
  | Readonly<{ kind: 'digest'; sequence: number; slice: Slice; value: string }>
  | Readonly<{ kind: 'ack'; sequence: number; credit: Credit; position?: string }>
  /** Refuses that mutation only. `reason` is one of domain/errors.ts. */
  | Readonly<{ kind: 'refuse'; sequence: number; reason: string; message: string }>
  /** What has changed of freshness since the last one; slices that are not pushed any more. */
  | Readonly<{ kind: 'status'; freshness: readonly SliceFreshness[]; withdrawn: readonly Slice[] }>
  /** Asks for a report. Numbered from 1 in each connection and direction; one at a time is unanswered. */
  | Readonly<{ kind: 'heartbeat'; number: number }>
  /**
   * What has changed of freshness since the last one. `isAll`: with this, everything was reported once. `isComplete`: every shard
   * that anybody behind the sender knows was reported; all neighbours it ever had are connected.
   */
  | Readonly<{
      kind: 'report';
      sequence: number;
      freshness: readonly SliceFreshness[];
      heartbeat: number;
      isAll: boolean;
      isComplete: boolean;
    }>
  /** What the receiving end holds of what comes over this link, and the last position it was sent. In parts; `isLast` marks the last. */
  | Readonly<{ kind: 'resume'; position: string; held: readonly HeldSlice[]; isLast: boolean }>
  /** The shard has its pusher. This one waits until that is gone; then its welcome comes. */
  | Readonly<{ kind: 'standby' }>
  | Readonly<{ kind: 'summary'; slice: Slice; sequence: number; digests: Uint8Array }>
  /** From a shard: what it has and did not name before, and what it no longer has. `isAll`: with this, all that it has is named. */
  | Readonly<{ kind: 'types'; slices: readonly Slice[]; withdrawn: readonly Slice[]; isAll: boolean }>
  /** Before a welcome, as often as needed: slices that this term has synced here. It may go on with changes; all others are to be synced. */
  | Readonly<{ kind: 'synced'; slices: readonly Slice[] }>
  | Readonly<{ kind: 'swept'; slice: Slice; keys: readonly PushedKey[] }>
  /** The last frame. `retryAfterMs` undefined: do not come back. */
  | Readonly<{ kind: 'bye'; reason: ByeReason; message: string; retryAfterMs: number | undefined }>;
