/**
 * The store's interfaces for the other modules, which an engine implements. Reads of objects, and
 * writes, are asynchronous, so that an engine need not be SQLite. They refer to the store at its
 * *published* revision: a write finds the state that lists, GETs and watches have shown.
 */
import type { CanonicalPath, ClusterName } from './cluster.js';
import type { Change, Commit } from './change.js';
import type { Key } from './key.js';
import type { Mutation, Outcome } from './mutation.js';
import type { StoredObject } from './object.js';
import type { Subscription } from './ports.js';
import type { PublishedState } from './published-state.js';
import type { Push, PushOutcome } from './push.js';
import type { Resource } from './resource.js';
import type { Located, Revision } from './revision.js';
import type { Scope } from './scope.js';
import type { ShardName } from './shard.js';

export interface Revisions {
  /** Everything up to this revision is durable and visible; nothing above it is. */
  readonly published: Revision;
  /** The oldest readable change is the one after this revision. */
  readonly compacted: Revision;
  format(revision: Revision): string;
  /**
   * `text` must be a positive decimal without sign or leading zero; anything else is a bug of the
   * caller.
   */
  locate(text: string): Located;
  /**
   * The text that a pusher or a link gets once everything up to the revision is acknowledged. It
   * has the form of a resourceVersion. It contains the store's epoch, because a later epoch may
   * reuse the revisions of lost changes.
   */
  formatPosition(revision: Revision): string;
  /** As `locate`; a position from another epoch of the store is not `ours`. */
  locatePosition(text: string): Located;
  /**
   * Resolves once everything that any server of the store acknowledged before the call is published
   * here. Throws Refused(ServiceUnavailable) if that cannot be known.
   */
  reachNewest(): Promise<void>;
}

/** Objects at present, or at an earlier revision that history still covers. */
export interface Objects {
  get(key: Key): Promise<StoredObject | undefined>;
  /**
   * The objects with one name on all shards of the scope, which must name cluster, namespace and
   * name.
   */
  find(scope: Scope): Promise<readonly StoredObject[]>;
  /**
   * The shards with an object at this place. Reads no object. The answer comes from disk, which may
   * be ahead of the published revision.
   */
  shardsWith(place: Omit<Key, 'shard'>): Promise<readonly ShardName[]>;
  /** The scope at `revision`. Throws Refused(Expired) if history no longer covers it. */
  snapshot(scope: Scope, revision: Revision): Snapshot;
  /**
   * The present number of objects of the scope behind the key `after`; undefined if more than `max`
   * keys would have to be examined.
   */
  count(scope: Scope, after: Key | undefined, max: number): Promise<number | undefined>;
  resources(): Promise<readonly Resource[]>;
}

/**
 * A scope at a revision, read page by page in key order. While open, it delays compaction for a
 * bounded time.
 */
export interface Snapshot {
  readonly revision: Revision;
  /**
   * The page after `after`, or the first one. A page may be empty without being the last. Throws
   * Refused(Expired) if the snapshot was open too long.
   */
  page(after: Key | undefined): Promise<SnapshotPage>;
  close(): void;
}

/** `next`: the key after which the next page starts; undefined on the last page. */
export type SnapshotPage = Readonly<{ objects: readonly StoredObject[]; next: Key | undefined }>;

/** All wanted changes after the previous chunk, up to `upTo`. */
export type LogChunk = Readonly<{ changes: readonly Change[]; upTo: Revision }>;

/** The changes of one type; an identity '*' covers every identity of the resource. */
export type LogType = Pick<Scope, 'group' | 'resource' | 'identity'>;

/** A change without its content; `object` reads the content, undefined if it is gone. */
export type Touch = Readonly<{ key: Key; kind: Change['kind']; object: () => StoredObject | undefined }>;

export interface History {
  /**
   * The first changes with after < revision ≤ upTo, ascending, as many as one turn of the event
   * loop may read. Omits changes of keys that are not wanted. Throws Refused(Expired) if after <
   * compacted.
   */
  changes(type: LogType, range: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): Promise<LogChunk>;
  /**
   * The changes of every type, chunk by chunk, for a link. May omit changes of keys that are not
   * wanted, unless they move a canonical path. A chunk may be empty, but always has the revision
   * that it reaches.
   */
  everyChange(range: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): AsyncIterable<LogChunk>;
  /**
   * Whether several objects of the scope changed at the revision. Also true if that revision's
   * changes are no longer readable.
   */
  hasSeveral(scope: Scope, revision: Revision): boolean;
  /**
   * Whether every key that changed since `after` is still known, though its content may be gone
   * (tombstones).
   */
  remembers(after: Revision): boolean;
  /**
   * The changes of keys of the scope with after < revision ≤ upTo, newest first. The first change
   * of a key shows the key's state at `upTo`; its earlier ones may be omitted. Reaches as far back
   * as `remembers`.
   */
  touched(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Touch[]>;
}

/** The only way to write to the store. */
export interface Writer {
  /** Resolves when the outcome is durable and published. */
  submit(mutation: Mutation): Promise<Outcome>;
  /**
   * A new queue for one pusher or link. Lanes take turns, so a full lane delays the others by at
   * most one commit.
   */
  lane(): PushLane;
}

export interface PushLane {
  /**
   * Resolves once the lane has room for more. Pushers wait, so no push is refused for lack of room.
   */
  drained(): Promise<void>;
  /**
   * Decides all pushes, in order and after the lane's earlier pushes; resolves when all outcomes
   * are durable and published. An `acquire` given alone does not wait for an `end` of its shard
   * that takes several commits. If the pusher gets the shard, that `end` is void.
   */
  push(pushes: readonly Push[]): Promise<readonly PushOutcome[]>;
}

/** Delivers commits in order, each in the tick in which it becomes visible. */
export interface Commits {
  subscribe(listener: (commit: Commit) => void): Subscription;
}

export interface CanonicalPaths {
  clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]>;
  /**
   * The logical clusters whose own path entry has this path (PATH-2). A path that other objects
   * name does not count.
   */
  ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]>;
  /**
   * The paths of logical clusters on shards, in the order of `places`. Without `at` they come from
   * disk, which may be ahead of the published revision. Rejects with Refused(Expired) if the
   * revision `at` is compacted.
   */
  pathsOf(
    places: readonly Readonly<{ shard: ShardName; cluster: ClusterName }>[],
    at?: Revision,
  ): Promise<readonly (CanonicalPath | undefined)[]>;
}

/**
 * The id of the cache and the epoch of its store. From both, a pusher learns whether the store
 * still has everything that it acknowledged.
 */
export interface StoreIdentity {
  /** Generated when the store is created. */
  readonly cacheId: string;
  readonly epoch: number;
}

/**
 * A pusher that is connected to another server. `isHeld`: that server keeps the shard for the
 * pusher. The other members cover all slices of the shard; `lagMs` is that of the slice that is
 * furthest behind.
 *
 * `lacks`: the types of the slices that are not whole, as `formatResource` writes them, if they are
 * few. Without `lacks`, any slice may be incomplete.
 */
export type PeerPusher = Readonly<{
  peer: string;
  isHeld: boolean;
  connected: boolean;
  lagMs: number;
  whole: boolean;
  lacks?: ReadonlySet<string>;
}>;

/**
 * A server's report to the others of its store. `lastWrites`: for each shard a number that changes
 * after plain writes.
 */
export type PeerState = Readonly<{ pushers: ReadonlyMap<ShardName, PeerPusher>; lastWrites: ReadonlyMap<ShardName, number> }>;

/** The other servers of the same store. A server without others leads. */
export interface Peers {
  /**
   * Since when this server leads, that is, does the work that only one server of a store does; in
   * milliseconds of the clock. Undefined while another leads.
   */
  readonly leadsSinceMs: number | undefined;
  /** The last report of each other server, by its id; silent ones are left out. */
  readonly others: ReadonlyMap<string, PeerState>;
  /** Whether this server knows no other, not even a silent one, which may resume. */
  readonly isAlone: boolean;
  report(state: PeerState): void;
  /** Calls the listener when another server reports, arrives or leaves, or the leader changes. */
  follow(listener: () => void): Subscription;
}

export interface EngineState {
  /** Whether the engine can still write. */
  readonly isOpen: boolean;
  /** Resolves when the engine stops without a `close`. */
  readonly failed: Promise<Error>;
  /** Why the last attempt to write failed; undefined if it succeeded. */
  readonly lastFailure: string | undefined;
  readonly waiting: Readonly<{ mutations: number; bytes: number }>;
  readonly logged: Readonly<{ changes: number; bytes: number }>;
  /** Keys that other programs wrote and whose values cannot be served. */
  readonly unreadableKeys: number;
  /** The size of each local file in which the engine stores objects, by its kind. */
  fileBytes(): ReadonlyMap<string, number>;
}

export interface Store extends StoreIdentity, EngineState {
  readonly revisions: Revisions;
  readonly objects: Objects;
  readonly history: History;
  readonly paths: CanonicalPaths;
  readonly writer: Writer;
  readonly commits: Commits;
  readonly state: PublishedState;
  readonly peers: Peers;
  /**
   * Announces `close`. Stops sweeps, so that none of them delays `close`. An `end`, a `clear` or a
   * `drop` that its next commit does not complete gets the outcome `unavailable`. All other work
   * continues.
   */
  beginClose(): void;
  /** Resolves once all submitted work is decided and the files are closed. */
  close(): Promise<void>;
}

/** Receives each commit and each step of a compaction, for metrics. */
export type StoreObserver = Readonly<{
  committed: (decided: Readonly<{ written: number; refused: number }>, elapsedMs: number) => void;
  compacted: (revision: Revision, elapsedMs: number) => void;
}>;
