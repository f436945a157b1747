/**
 * The store as the rooms see it: the port that an engine implements. Every contract is asynchronous so that an engine other than SQLite can
 * stand behind it, and means the store at its *published* revision: what a list, a GET or a watch has shown is what a write finds.
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

/** The engine's positions and their texts. */
export interface Revisions {
  /** Everything up to here is durable and visible; nothing above it is. */
  readonly published: Revision;
  /** The oldest change that is still readable is the next one. */
  readonly compacted: Revision;
  format(revision: Revision): string;
  /** `text` is a plain decimal above zero; anything else is the caller's mistake. */
  locate(text: string): Located;
  /**
   * The text of a revision for a pusher or a link that was acknowledged everything up to it, of the form of a resourceVersion. It names the life of the store: a
   * life after it may have lost something, though a revision of that number is there again.
   */
  formatPosition(revision: Revision): string;
  /** As `locate`; what another life of the store gave is not ours. */
  locatePosition(text: string): Located;
  /**
   * Resolves once all that was acknowledged before the call, by whichever server of the store, is published here. Throws Refused(ServiceUnavailable) where
   * that cannot be known.
   */
  reachNewest(): Promise<void>;
}

/** Objects, now or at an earlier revision that history still covers. */
export interface Objects {
  get(key: Key): Promise<StoredObject | undefined>;
  /** The objects of one place, on whichever shards of the scope have one. The scope names cluster, namespace and name. */
  find(scope: Scope): Promise<readonly StoredObject[]>;
  /** The shards that have an object at this place, without reading any; those on disk, which may be ahead of what is published. */
  shardsWith(place: Omit<Key, 'shard'>): Promise<readonly ShardName[]>;
  /** The scope as it stood at `revision`. Throws Refused(Expired) when history no longer covers it. */
  snapshot(scope: Scope, revision: Revision): Snapshot;
  /** How many objects of the scope are after `after` now; undefined when more than `max` keys would have to be looked at for that. */
  count(scope: Scope, after: Key | undefined, max: number): Promise<number | undefined>;
  /** Resources that hold objects. */
  resources(): Promise<readonly Resource[]>;
}

/** A scope at a revision, read page by page in key order. While open, it holds compaction back for a bounded time. */
export interface Snapshot {
  readonly revision: Revision;
  /** The page after `after`, or the first. May be empty without being the last. Throws Refused(Expired) when held too long. */
  page(after: Key | undefined): Promise<SnapshotPage>;
  close(): void;
}

/** `next` is the key to read on after; undefined on the last page. */
export type SnapshotPage = Readonly<{ objects: readonly StoredObject[]; next: Key | undefined }>;

/** All changes of interest up to `upTo`, after the chunk before. */
export type LogChunk = Readonly<{ changes: readonly Change[]; upTo: Revision }>;

/** The changes of one type; an identity '*' covers every identity of the resource. */
export type LogType = Pick<Scope, 'group' | 'resource' | 'identity'>;

/** A change without its content, which `object` reads: undefined when it is gone. */
export type Touch = Readonly<{ key: Key; kind: Change['kind']; object: () => StoredObject | undefined }>;

/** The change log. */
export interface History {
  /**
   * The first changes with after < revision ≤ upTo, rising, as many as one turn of the event loop may read. Leaves out changes of keys that are
   * not wanted. Throws Refused(Expired) when after < compacted.
   */
  changes(type: LogType, range: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): Promise<LogChunk>;
  /**
   * Chunk after chunk of every type: what a link reads. May leave out changes of keys that are not wanted, unless they move a canonical path;
   * a chunk then names the revision it reaches, and may be empty.
   */
  everyChange(range: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): AsyncIterable<LogChunk>;
  /** Whether several objects of the scope have changed at the revision, or may have where its changes are not readable any more. */
  hasSeveral(scope: Scope, revision: Revision): boolean;
  /** Whether every key that changed since `after` can still be named, though its content may be gone (tombstones). */
  remembers(after: Revision): boolean;
  /**
   * What happened to keys of the scope with after < revision ≤ upTo, newest first: the first time a key comes shows its state at `upTo`. What was
   * replaced before that may be left out. Answers as far back as `remembers`.
   */
  touched(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Touch[]>;
}

/** The one way into the store. */
export interface Writer {
  /** Resolves when the outcome is durable and published. */
  submit(mutation: Mutation): Promise<Outcome>;
  /** A queue of its own, for a pusher or a link. Lanes take turns, so a full one delays the others by a commit at most. */
  lane(): PushLane;
}

export interface PushLane {
  /** Resolves once there is room for more: pushers wait, and none of their pushes is refused for lack of it. */
  room(): Promise<void>;
  /**
   * Decides all of them, in order and after what the lane was given before; resolves when all outcomes are durable and published.
   * A claim given alone does not wait for an `end` of its shard that takes several commits: if the claim stands, that `end` is void.
   */
  push(pushes: readonly Push[]): Promise<readonly PushOutcome[]>;
}

/** Commits as they are published, in order, each in the tick in which it becomes visible. */
export interface Commits {
  subscribe(listener: (commit: Commit) => void): Subscription;
}

/** The index from canonical paths to logical clusters. */
export interface CanonicalPaths {
  clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]>;
  /** Those whose own path entry has this path (PATH-2): what other objects name counts for nothing. */
  ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]>;
  /**
   * The paths of logical clusters on shards, in their order: those on disk, which may be ahead of what is published, or those at a revision.
   * Rejects with Refused(Expired) if that is compacted.
   */
  pathsOf(
    places: readonly Readonly<{ shard: ShardName; cluster: ClusterName }>[],
    at?: Revision,
  ): Promise<readonly (CanonicalPath | undefined)[]>;
}

/** Which cache this is, and which life of its store: together they show a pusher whether what it was acknowledged is here. */
export interface StoreIdentity {
  /** Made at the birth of the store. */
  readonly cacheId: string;
  readonly epoch: number;
}

/**
 * A pusher that is connected to another server. `isHeld`: it keeps its shard. The rest is of all its slices together; `lagMs` of the one most behind. `lacks`: the types
 * of those that are not whole, each by its text (`formatResource`), where not all are whole and there are few; without it each slice may be one of them.
 */
export type PeerPusher = Readonly<{
  peer: string;
  isHeld: boolean;
  connected: boolean;
  lagMs: number;
  whole: boolean;
  lacks?: ReadonlySet<string>;
}>;

/** What a server says to the others of its store: who pushes to it, and for each shard a number that changes when a plain writer is heard. */
export type PeerState = Readonly<{ pushers: ReadonlyMap<ShardName, PeerPusher>; heard: ReadonlyMap<ShardName, number> }>;

/** The other servers of the same store. Where a store has one server, that leads and has no others. */
export interface Peers {
  /** Since when this server does what is to be done once, in milliseconds of the clock; undefined while another does. */
  readonly leadsSinceMs: number | undefined;
  /** What they have said last, by their ids; without those that are silent. */
  readonly others: ReadonlyMap<string, PeerState>;
  /** Whether nobody is to be told anything: no other is known, not even a silent one, which may go on. */
  readonly isAlone: boolean;
  tell(state: PeerState): void;
  /** Calls when one of them has said something, or has come or gone, or the lead has changed. */
  follow(listener: () => void): Subscription;
}

/** How an engine does: for health, and for metrics. */
export interface EngineState {
  /** Whether anything can still be written. */
  readonly isOpen: boolean;
  /** Resolves when that has ended without a `close`. */
  readonly failed: Promise<Error>;
  /** Why the last attempt to write failed; undefined when it did not. */
  readonly lastFailure: string | undefined;
  /** Mutations and their bytes that wait to be committed. */
  readonly waiting: Readonly<{ mutations: number; bytes: number }>;
  /** What the change log holds. */
  readonly logged: Readonly<{ changes: number; bytes: number }>;
  /** Keys that hold nothing which can be served: others have put it there. */
  readonly unreadableKeys: number;
  /** The size of each file of this machine in which it keeps objects, by what the file is. */
  fileBytes(): ReadonlyMap<string, number>;
}

/** What an engine opens: its parts, each the object that does the work, and how it does itself. */
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
   * Announces `close`. Sweeps do not go on: an `end`, a `clear` or a `drop` that is not done with its next commit is
   * answered `unavailable`, so that nobody who waits for one keeps the server from stopping. Everything else goes on.
   */
  beginClose(): void;
  /** Resolves once what was submitted is decided and the files are closed. */
  close(): Promise<void>;
}

/** What a store tells while it works: how long a commit took, and each step of its compaction. */
export type StoreObserver = Readonly<{
  committed: (decided: Readonly<{ written: number; refused: number }>, elapsedMs: number) => void;
  compacted: (revision: Revision, elapsedMs: number) => void;
}>;
