/**
 * The frames that cross a websocket. Each is one msgpack array in one websocket message: the number
 * of its kind, then its members in the order of this table. frame-fields.ts defines their types.
 * The union `Frame` is closed: frame-codec.ts reads and writes all of it.
 *
 * Roles. A shard sends its own objects: hello, then put, delete, begin, end, clusterBegin,
 * clusterEnd, clusterKeep, types and status. It receives synced, standby, welcome, ack, refuse and
 * resync. Caches push both ways, for all shards that cross the link (tree/). Only caches send
 * claim, route, policy, progress, digest, resume, summary, swept, heartbeat and report. Only their
 * hello has credit and limits. Only sessions of a shard use clusterBegin, clusterEnd, clusterKeep,
 * status, standby, synced and types.
 *
 * Sequence. The sender numbers its mutations from 1 in each connection and direction. A put or
 * delete frame carries the number of its first mutation, and its other mutations have the next
 * numbers. Each begin, end, clusterBegin, clusterEnd, clusterKeep, progress, digest and report is
 * one mutation. An ack or refuse names one of these numbers.
 *
 * Position. A progress frame carries a position, and a put or delete frame may: a resourceVersion
 * of the sending cache's store. Before that frame, the sender has sent everything that crosses the
 * link, up to the position. The receiver stores the position and the content of the frame in one
 * commit.
 *
 * Comparison. A digest or a report of freshness covers everything sent before it. A report also
 * answers a heartbeat; 0 answers none. Before the report that names heartbeat N, the sender has
 * sent everything that it held when heartbeat N arrived. The order of the frames alone ensures
 * this.
 *
 * The receiver answers a begin that has `compares` with a summary of the objects that it holds
 * then. The summary has the number of the begin. It has SHA-256 digests of 32 bytes each, for up to
 * 256 buckets of keys (domain/slices/summary.ts, domain/slices/buckets.ts), or none if the receiver
 * cannot give them. The sender sends the objects of the buckets that differ from its own, and an
 * end that names these buckets. The other buckets are equal; the receiver removes objects only from
 * the named buckets.
 *
 * Logical clusters. Between clusterBegin and clusterEnd, the sender sends all objects of one
 * logical cluster of a slice, mixed with other frames. At clusterEnd the receiver removes the
 * objects of that logical cluster that did not arrive. Several such syncs may be under way at a
 * time, with and without a begin of the whole slice before them. A begin of the slice voids the
 * clusterBegins before it. `count` is the number of objects of that logical cluster put since its
 * clusterBegin. If such a sync breaks off, the whole slice is resynced.
 *
 * The end of a slice removes no object of a logical cluster whose sync is under way. It also
 * removes none of a logical cluster that clusterKeep names: the sender cannot read that one. In
 * both cases, the later clusterEnd of that logical cluster removes its unsent objects. The slice
 * counts as synced only after the last of these clusterEnds.
 *
 * The receiver of a sync sends a swept frame: the keys that it has removed because the sync did not
 * contain them. The sender of the sync may have lost these objects.
 *
 * An ack may carry a position of the receiving cache's store, at or above the revisions of
 * everything acknowledged. A shard sends the position of its last ack back in its hello. A cache
 * whose store does not know that position has lost acknowledged mutations, and names no slice as
 * synced.
 *
 * Types. A types frame names slices that the shard has, each once in a connection and before its
 * begin. It withdraws those that the shard no longer has. While the last types frame has `isAll`,
 * the cache removes its objects of any other slice of that shard. Without a types frame, or if the
 * pusher cannot know all its slices, the cache removes nothing.
 *
 * Liveness: the websocket's own ping and pong.
 *
 * Ladder of versions. Frames are additive: a new member is appended, and an older reader ignores
 * it. A change that an older reader would misread needs a new version, negotiated in hello. Golden
 * bytes of the old version stay.
 * v1: all of the above. A reader that ignores the position of a put or delete learns a later one
 *    from the next progress. A shard that ignores the position of an ack resyncs everything
 *    whenever it connects. A cache that does not know clusterBegin ends the session (bye protocol)
 *    before it removes anything.
 */
import { parseBucketSet } from '../domain/slices/buckets.js';
import { parseClusterName } from '../domain/cluster.js';
import { parseShardName } from '../domain/shard.js';
import { parseByeReason } from './bye.js';
import { frameBounds } from './frame-bounds.js';
import {
  bytes,
  count,
  flag,
  hash,
  id,
  keys,
  late,
  listOf,
  message,
  objects,
  optional,
  parsed,
  policyText,
  positive,
  record,
  slice,
  text,
  type Fields,
  type ValuesOf,
} from './frame-fields.js';

export type { PushedKey, PushedObject } from './frame-fields.js';

export const protocolVersion = 1;

const credit = record({ mutations: count, bytes: count });
export type Credit = ReturnType<typeof credit.read>;

const limits = record({ frameBytesMax: positive, frameMutationsMax: positive, bodyBytesMax: positive });
export type FrameLimits = ReturnType<typeof limits.read>;

/**
 * The state of a slice that a cache receives over this link. `filterHash`: the link filter with
 * which the slice is current, '' if it must be resynced. `syncedTerm`: the term that synced it, 0
 * if none has.
 */
const held = record({ slice, filterHash: hash, syncedTerm: count });
export type InventorySlice = ReturnType<typeof held.read>;

/**
 * What a sender knows of the freshness of a slice. `connected`: whether its source is connected.
 * `synced`: whether the slice is synced at the sender. `lagMs`: the age of the oldest
 * unacknowledged change.
 *
 * `whole`: once the receiver has applied all earlier frames, the receiver has every object that the
 * shard has of the slice. No cache refused an object, and no policy excluded one.
 */
const freshness = record({ slice, connected: flag, synced: flag, lagMs: count, whole: flag });
export type SliceFreshness = ReturnType<typeof freshness.read>;

/** What a reporter knows of a slice, except whether it is synced. */
export type SliceReport = Omit<SliceFreshness, 'slice' | 'synced'>;

const slices = listOf(slice);
const ids = listOf(id, frameBounds.pathMax);
const cluster = parsed(parseClusterName);

export const frames = {
  hello: kind(1, {
    protocol: positive,
    role: parsed((value) => (value === 'shard' || value === 'cache' ? value : undefined)),
    /** The name of the shard or of the cache, as in its certificate. */
    name: text,
    /** From a shard: an id that its process has generated. From a cache: ''. */
    process: text,
    /**
     * From a shard: the last term of its process, 0 before the first. From a cache: when its
     * process started, in milliseconds since 1970.
     */
    term: count,
    /** From a shard: takes the shard over instead of waiting as a standby. */
    takesOver: flag,
    /** Ids of caches from the sender to the root, its own first; empty from a shard. */
    route: ids,
    /** The sender's program and version, for the log. */
    agent: text,
    /** From a cache: the credit for mutations from its parent. */
    credit: optional(credit),
    limits: optional(limits),
    /** From a shard: the position of its last ack. */
    position: late(text),
  }),
  welcome: kind(2, {
    protocol: positive,
    cacheId: text,
    epoch: count,
    /** The new term of the shard's process, which its next hello names; 0 to a cache. */
    term: count,
    credit,
    limits,
  }),
  put: kind(3, { sequence: positive, slice, version: text, objects, position: late(text) }),
  delete: kind(4, { sequence: positive, slice, keys, position: late(text) }),
  begin: kind(5, { sequence: positive, slice, revision: text, compares: late(flag) }),
  /**
   * An end without a begin says that the slice is fully synced and current with the link filter
   * that `filterHash` names.
   */
  end: kind(6, {
    sequence: positive,
    slice,
    revision: text,
    /** The number of objects put since begin. */
    count,
    /** The hash of what the policies of both caches let through of the slice; '' from a shard. */
    filterHash: hash,
    /** The buckets whose objects were sent; all of them if left out. */
    buckets: late(parsed(parseBucketSet)),
    /**
     * From a cache: the term of the claim under which it sends the shard. Claims wait for no
     * credit, so a later claim may have overtaken this frame.
     */
    term: late(positive),
  }),
  resync: kind(7, { slice, reason: message }),
  progress: kind(8, { sequence: positive, position: text }),
  /**
   * The claim that the sender has chosen for a shard, and the path to its origin (domain/claim.ts).
   */
  claim: kind(9, {
    shard: parsed(parseShardName),
    term: positive,
    process: text,
    removed: flag,
    origin: id,
    /** Ids of caches from the origin to the sender, as far as it knows. */
    path: ids,
    reached: flag,
    /** The sender has chosen the receiver as its via, so the receiver sends it the shard. */
    isYours: flag,
    held: flag,
  }),
  /** From a parent: its own id and those above it. */
  route: kind(10, { route: ids }),
  /**
   * What this end lets through in each direction: the rules as JSON text (domain/link-policy.ts).
   */
  policy: kind(11, { up: policyText, down: policyText }),
  digest: kind(12, { sequence: positive, slice, value: text }),
  ack: kind(13, { sequence: count, credit, position: late(text) }),
  /** Refuses that mutation only. `reason` is one of domain/errors.ts. */
  refuse: kind(14, { sequence: positive, reason: text, message }),
  /**
   * What changed of freshness since the last status. `withdrawn`: slices that the sender has
   * stopped pushing.
   */
  status: kind(15, { freshness: listOf(freshness), withdrawn: slices }),
  /**
   * The last frame. `retryAfterMs` undefined: a pusher must not reconnect after fenced, forbidden
   * or unsupported. After any other reason, and on a link, the peer chooses when to reconnect
   * (sender/reconnect.ts, tree/links/link.ts).
   */
  bye: kind(16, { reason: parsed(parseByeReason), message, retryAfterMs: optional(count) }),
  /**
   * The sender's inventory of this link: the last position that it received, and its slices.
   * `isLast` marks the last of several such frames.
   */
  resume: kind(17, { position: text, held: listOf(held), isLast: flag }),
  /**
   * Asks for a report. Numbered from 1 in each connection and direction; at most one is unanswered.
   */
  heartbeat: kind(18, { number: positive }),
  /** What changed of freshness since the last report. */
  report: kind(19, {
    sequence: positive,
    freshness: listOf(freshness),
    /** The heartbeat that this report answers; 0: none. */
    heartbeat: count,
    /** After this report, the sender has reported every slice once. */
    isAll: flag,
    /**
     * The sender has reported everything once. Every neighbour that it ever had, except the
     * receiver, is connected and complete (docs/glossary.md).
     */
    isComplete: flag,
  }),
  summary: kind(20, { slice, sequence: positive, digests: bytes }),
  /**
   * Another pusher has the shard. The receiver of this frame waits until that pusher disconnects,
   * and then gets a welcome.
   */
  standby: kind(21, {}),
  /**
   * From a shard: `slices`, which it has not named before, and `withdrawn`, which it no longer has.
   * `isAll`: this and earlier frames name all its slices.
   */
  types: kind(22, { slices, withdrawn: slices, isAll: flag }),
  swept: kind(23, { slice, keys }),
  /** All objects of one logical cluster of the slice follow, up to its clusterEnd. */
  clusterBegin: kind(24, { sequence: positive, slice, cluster }),
  clusterEnd: kind(25, { sequence: positive, slice, cluster, count }),
  /** The next end of the slice removes nothing of the logical cluster. */
  clusterKeep: kind(26, { sequence: positive, slice, cluster }),
  /**
   * Slices that the pusher's term has synced here, in any number of frames before the welcome. The
   * pusher may continue these slices with changes, and must sync all others.
   */
  synced: kind(27, { slices }),
};

type Frames = typeof frames;
export type Frame = { [Kind in keyof Frames]: Readonly<{ kind: Kind }> & ValuesOf<Frames[Kind]['fields']> }[keyof Frames];
export type FrameOf<Kind extends Frame['kind']> = Extract<Frame, { kind: Kind }>;

function kind<F extends Fields>(number: number, fields: F): Readonly<{ number: number; fields: F }> {
  return { number, fields };
}
