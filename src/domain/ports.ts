/** Where the rooms meet, but for the store, which is store-port.ts. */
import type { Refusal } from './errors.js';
import type { HeavyResult, HeavyTask } from './heavy-task.js';
import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { PathAnswer, PathResolution } from './path-resolution.js';
import type { Resource } from './resource.js';
import type { Revision } from './revision.js';
import type { Room } from './room.js';
import type { Scope } from './scope.js';
import type { Selector } from './selector.js';
import type { ShardName } from './shard.js';
import type { StatusReport } from './status.js';
import type { FreshnessQuestion, TypeFreshnessReport } from './type-freshness.js';
import type { CreateRequest, DeleteRequest, Stored, UpdateRequest } from './write-request.js';

/**
 * Does work on whole documents that takes longer than a turn of the event loop may: small tasks at once, others in another thread.
 * Throws Refused: 429 when too much of it waits, 413 for a task that takes too long, and whatever the task itself is refused for.
 */
export interface HeavyWork {
  run<Task extends HeavyTask>(task: Task): Promise<HeavyResult<Task>>;
}

/** Owners whose work waits take turns. */
export interface HeavyWorks {
  /** For one owner: a user. */
  of(owner: string): HeavyWork;
}

/** Where writes over HTTP come in. Each throws Refused. */
export interface Intake {
  create(bytes: Uint8Array, request: CreateRequest): Promise<Stored>;
  /** `textFor` gives the new text for the current object, again if that has changed meanwhile and the text does not depend on it. */
  update(textFor: (current: StoredObject) => Uint8Array | Promise<Uint8Array>, request: UpdateRequest, heavy: HeavyWork): Promise<Stored>;
  delete(request: DeleteRequest): Promise<StoredObject>;
}

export interface Subscription {
  cancel(): void;
}

export type EventItem = Readonly<{
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: StoredObject;
  /** The event's own: a DELETED has the delete's, or that of the update that left the selector. */
  resourceVersion: string;
}>;

/** How a watch puts objects on the wire. Two watches with the same `id` share every encoded byte. `isOwn`: no other has its id. */
export interface Representation {
  readonly id: string;
  readonly isOwn?: true;
  /** Events back to back, each one line. */
  events(items: readonly EventItem[]): Uint8Array;
  /** DELETED events for keys whose content is gone: name, namespace and both place annotations. */
  forgotten(keys: readonly Key[], resourceVersion: string): Uint8Array;
  bookmark(resourceVersion: string, initialEventsEnd: boolean): Uint8Array;
  /** One ERROR event, the last of its stream. */
  error(refusal: Refusal): Uint8Array;
}

/** How a list puts objects on the wire. Two readers with the same `id` share every encoded byte. `isOwn`: no other has its id. */
export interface ListEncoding {
  readonly id: string;
  readonly isOwn?: true;
  /** `objects` is never empty. */
  encode(objects: readonly StoredObject[]): Uint8Array;
}

/** What a list or a watch begins with, as encoded chunks, shared by those who ask for the same. */
export interface Snapshots {
  /** Of a revision that is not older than what is published now; it may be somewhat newer, so that more readers share it. */
  present(scope: Scope, selector: Selector, encoding: ListEncoding): Promise<PresentState>;
  /** One for each page that is read, empty where it shows nothing: whoever is gone reads no further. */
  chunks(scope: Scope, selector: Selector, revision: Revision, encoding: ListEncoding): AsyncIterable<Uint8Array>;
}

export type PresentState = Readonly<{ revision: Revision; chunks: AsyncIterable<Uint8Array> }>;

/**
 * Where a watch begins: with the present state, or after a revision. `endsWithBookmark`: an annotated bookmark follows the present state.
 * `forgetSince`: the revision that the client names, since when it may have missed deletes.
 */
export type WatchStart = Readonly<
  { kind: 'initial'; endsWithBookmark: boolean; forgetSince: Revision | undefined } | { kind: 'after'; revision: Revision }
>;

/** Where a live watch writes what it has, as long as its reader keeps up. */
export interface Sink {
  /** Whether its reader has to take something first. */
  readonly isFull: boolean;
  /** Writes pieces that room was taken for, in the tick of the call. */
  writeNow(pieces: readonly Uint8Array[]): void;
}

export type WatchRequest = Readonly<{
  scope: Scope;
  selector: Selector;
  representation: Representation;
  start: WatchStart;
  bookmarks: boolean;
  /** How long the watch lasts. */
  timeoutMs: number;
  /** Where room was taken for every piece that the watch hands out. */
  room: Room;
  /** Gets what comes while the watch is live and its reader keeps up; all else is read from the open watch. */
  sink: Sink;
}>;

/** An open watch: pieces to write, in order, several when they are there. While it is asked for the next, it may write to its sink instead. */
export interface OpenWatch extends AsyncIterable<readonly Uint8Array[]> {
  /** Nothing that is published from now on is shown. It ends by itself when its time is up. `why`: sent as its last event; else its client may go on. */
  end(why?: Refusal): void;
  /** Its client has gone, maybe with a thousand others: it ends in a turn of the event loop that has time for it. */
  abandon(): void;
}

export interface Watches {
  readonly openWatches: number;
  open(request: WatchRequest): OpenWatch;
  /**
   * Sends DELETED for the key to the live watches that cover it, if no namesake on another shard exists: somebody has it from a state of the store
   * that is lost. Sends nothing when something changes just now.
   */
  reportAbsent(key: Key): Promise<void>;
  /** Ends, cleanly, the watches of exactly that type and identity; those of every identity go on. */
  endOf(resource: Resource): void;
}

/** How fresh each shard's part of this cache is. */
export interface Freshness {
  report(): Promise<StatusReport>;
  /** Its cost grows with the slices of the type and the shards, or with the one slice. */
  ofType(question: FreshnessQuestion): Promise<TypeFreshnessReport>;
  /** On all shards, as it was less than `ageMaxMs` ago, or as it is now: of many who ask, one pays. */
  ofTypeLately(type: Omit<FreshnessQuestion, 'shard'>, ageMaxMs: number): Promise<RecentReport>;
}

/** `agoMs`: how long before now the report was begun. */
export type RecentReport = Readonly<{ report: TypeFreshnessReport; agoMs: number }>;

/** Which logical cluster a path leads to, on which shard, by the path entries that are published. */
export interface Paths {
  /** `text` may be anything; what is no path is unknown. */
  resolve(text: string): Promise<PathResolution>;
  /** The same with its freshness, which is asked for first. */
  answer(text: string): Promise<PathAnswer>;
}

/** What an operator does to shards as a whole. */
export interface Shards {
  /** Fences the shard and removes its objects; returns how many. Undefined when the shard is unknown. Throws Refused when it cannot be done now. */
  remove(shard: ShardName): Promise<Readonly<{ removed: number }> | undefined>;
  /** Drops what is remembered of a shard that was removed. False when the shard is unknown. Throws Refused when that cannot be done now. */
  forget(shard: ShardName): Promise<boolean>;
}

/** What an operator does to removals that are held. */
export interface Removals {
  /** Releases those of a shard, of one type (`apiexports.apis.kcp.io`, with `:IDENTITY` where it has one) or of all; returns which were held. */
  confirm(shard: ShardName, type: string | undefined): readonly Readonly<{ type: string; removes: number }>[];
}

/** What an operator does to the caches of the tree. */
export interface Caches {
  /** Drops what is kept of a child, and returns how many shards that came by it are nobody's now. Undefined when it is unknown. Throws Refused. */
  leave(name: string): Promise<Readonly<{ shards: number }> | undefined>;
}

/** Time, injected so that tests own it. */
export interface Clock {
  /** Milliseconds since 1970 when the process started, counted on from there: it never steps. For every interval, and for times that are kept. */
  now(): number;
  /** Milliseconds since 1970 as the machine has it now; it steps. For certificates, terms and what people read, never for an interval. */
  wallMs(): number;
  /** Runs `task` once after `delayMs`; the result cancels it. */
  after(delayMs: number, task: () => void): () => void;
}
