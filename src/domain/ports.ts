/**
 * The interfaces through which modules use each other, except the store's, which are in
 * store-port.ts.
 */
import type { Refusal } from './errors.js';
import type { HeavyResult, HeavyTask } from './heavy-task.js';
import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { PathAnswer, PathResolution } from './path-resolution.js';
import type { Resource } from './resource.js';
import type { Revision } from './revision.js';
import type { MemoryReservation } from './base/memory-reservation.js';
import type { Scope } from './scope.js';
import type { Selector } from './syntax/selector.js';
import type { ShardName } from './shard.js';
import type { StatusReport } from './status.js';
import type { FreshnessQuestion, TypeFreshnessReport } from './type-freshness.js';
import type { CreateRequest, DeleteRequest, Stored, UpdateRequest } from './write-request.js';

/**
 * Small tasks run at once, others in another thread. Throws Refused: 429 if too many tasks wait,
 * 413 if a task takes too long, or the task's own refusal.
 */
export interface HeavyWork {
  run<Task extends HeavyTask>(task: Task): Promise<HeavyResult<Task>>;
}

/** If several owners have tasks waiting, the owners take turns. */
export interface HeavyWorks {
  /** `owner`: a user. */
  of(owner: string): HeavyWork;
}

/** The writes over HTTP. Each throws Refused. */
export interface Intake {
  create(bytes: Uint8Array, request: CreateRequest): Promise<Stored>;
  /**
   * `textFor` computes the new text from the current object. If the object has changed meanwhile,
   * the intake calls `textFor` again, and refuses a text that names the former revision.
   */
  update(textFor: (current: StoredObject) => Uint8Array | Promise<Uint8Array>, request: UpdateRequest, heavy: HeavyWork): Promise<Stored>;
  delete(request: DeleteRequest): Promise<StoredObject>;
}

export interface Subscription {
  cancel(): void;
}

export type EventItem = Readonly<{
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: StoredObject;
  /**
   * The event's own resourceVersion: a DELETED has that of the delete, or of the update by which
   * the object left the selector.
   */
  resourceVersion: string;
}>;

/**
 * How a watch encodes objects. Watches with the same `id` share every encoded byte. `isOwn`: no
 * other watch has this id.
 */
export interface Representation {
  readonly id: string;
  readonly isOwn?: true;
  /** The events, one line each. */
  events(items: readonly EventItem[]): Uint8Array;
  /**
   * DELETED events for keys whose content is gone: with name, namespace and the annotations of
   * shard and cluster.
   */
  forgotten(keys: readonly Key[], resourceVersion: string): Uint8Array;
  bookmark(resourceVersion: string, initialEventsEnd: boolean): Uint8Array;
  /** One ERROR event, the last of its stream. */
  error(refusal: Refusal): Uint8Array;
}

/**
 * How a list encodes objects; as in `Representation`, readers with the same `id` share every byte.
 */
export interface ListEncoding {
  readonly id: string;
  readonly isOwn?: true;
  /** `objects` is never empty. */
  encode(objects: readonly StoredObject[]): Uint8Array;
}

/**
 * The initial state of lists and watches, as encoded chunks that readers of the same state share.
 */
export interface Snapshots {
  /**
   * The state at the published revision. A call may wait for a newer one, so that more readers
   * share the state.
   */
  present(scope: Scope, selector: Selector, encoding: ListEncoding): Promise<PresentState>;
  /**
   * One chunk for each page, empty if the page has no matching object. Stops reading pages once its
   * reader stops.
   */
  chunks(scope: Scope, selector: Selector, revision: Revision, encoding: ListEncoding): AsyncIterable<Uint8Array>;
}

export type PresentState = Readonly<{ revision: Revision; chunks: AsyncIterable<Uint8Array> }>;

/**
 * Where a watch starts: with the present state, or after a revision. `endsWithBookmark`: an
 * annotated bookmark follows the present state. `forgetSince`: the client's revision; the client
 * may have missed deletes after it.
 */
export type WatchStart = Readonly<
  { kind: 'initial'; endsWithBookmark: boolean; forgetSince: Revision | undefined } | { kind: 'after'; revision: Revision }
>;

/** Where a live watch writes its events while its reader keeps up. */
export interface Sink {
  /** Whether the reader must read some bytes before the watch writes more. */
  readonly isFull: boolean;
  /** Writes pieces in the tick of the call; memory for them is already reserved. */
  writeNow(pieces: readonly Uint8Array[]): void;
}

export type WatchRequest = Readonly<{
  scope: Scope;
  selector: Selector;
  representation: Representation;
  start: WatchStart;
  bookmarks: boolean;
  timeoutMs: number;
  /** The watch reserves memory here for every piece that it returns. */
  memory: MemoryReservation;
  /** The exchange reads everything else from the open watch. */
  sink: Sink;
}>;

/**
 * An open watch: pieces to write in order, one or more at a time. While a reader waits for the next
 * pieces, the watch may write to its sink instead.
 */
export interface OpenWatch extends AsyncIterable<readonly Uint8Array[]> {
  /**
   * Ends the watch, which sends nothing that is published after the call. A watch also ends by
   * itself when its time is up. `why`: sent as the last event. Without it, the client may continue
   * with a new watch.
   */
  end(why?: Refusal): void;
  /**
   * Ends the watch because its client has disconnected. The watch ends in a later, less busy turn
   * of the event loop, because a thousand clients may disconnect at once.
   */
  abandon(): void;
}

export interface Watches {
  readonly openWatches: number;
  open(request: WatchRequest): OpenWatch;
  /**
   * Sends DELETED for the key to the live watches that cover it, if no shard has an object of that
   * name. A client may know the object from a lost state of the store. Sends nothing if a commit is
   * published meanwhile.
   */
  reportAbsent(key: Key): Promise<void>;
  /**
   * Ends, cleanly, the watches of that type and identity. Watches of all identities (`*`) stay.
   */
  endOf(resource: Resource): void;
}

export interface Freshness {
  report(): Promise<StatusReport>;
  /**
   * For one shard, the cost is that of its slice; otherwise the cost grows with the shards and the
   * slices of the type.
   */
  ofType(question: FreshnessQuestion): Promise<TypeFreshnessReport>;
  /**
   * The freshness of the type on all shards: a report less than `ageMaxMs` old, or a new one. Of
   * many callers, one computes the new report.
   */
  ofTypeLately(type: Omit<FreshnessQuestion, 'shard'>, ageMaxMs: number): Promise<RecentReport>;
}

/** `agoMs`: the time since the report was begun. */
export type RecentReport = Readonly<{ report: TypeFreshnessReport; agoMs: number }>;

/** Resolves paths by the published path entries. */
export interface Paths {
  /** `text` may be anything; a text that is not a path is `unknown`. */
  resolve(text: string): Promise<PathResolution>;
  /** Adds the freshness, which is read before the path is resolved. */
  answer(text: string): Promise<PathAnswer>;
}

export interface Shards {
  /**
   * Shuts out the shard's pushers and removes its objects; returns how many. Undefined if the shard
   * is unknown. Throws Refused if this is not possible at present.
   */
  remove(shard: ShardName): Promise<Readonly<{ removed: number }> | undefined>;
}

export interface Removals {
  /**
   * Releases the held removals of a shard, of one type (`apiexports.apis.kcp.io`, with `:IDENTITY`
   * if it has one) or of all. Returns those that were held.
   */
  confirm(shard: ShardName, type: string | undefined): readonly Readonly<{ type: string; removes: number }>[];
}

export interface Caches {
  /**
   * Forgets a child. Returns how many shards lost their via with it; undefined if the child is
   * unknown. Throws Refused.
   */
  leave(name: string): Promise<Readonly<{ shards: number }> | undefined>;
}

/** Time is injected, so that tests control it. */
export interface Clock {
  /**
   * Milliseconds since 1970: the wall clock at the process's start plus the time since. Never
   * steps. Use it for every interval, and for stored times.
   */
  now(): number;
  /**
   * Milliseconds since 1970 by the machine's present wall clock, which may step. Use it for
   * certificates, terms and output for people, never for an interval.
   */
  wallMs(): number;
  /** The returned function cancels the task. */
  after(delayMs: number, task: () => void): () => void;
}
