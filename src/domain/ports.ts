/**
 * Where the rooms meet. Every contract is asynchronous so that an engine other than SQLite can stand behind it (D11),
 * and speaks of the store at its *published* revision: what a list, a GET or a watch has shown is what a write finds (D3).
 */
import type { CanonicalPath, ClusterName } from './cluster.js';
import type { Commit, Change } from './change.js';
import type { Key } from './key.js';
import type { Mutation, Outcome } from './mutation.js';
import type { StoredObject } from './object.js';
import type { Located, Revision } from './revision.js';
import type { Scope } from './scope.js';

/** The engine's positions and their texts. */
export interface Revisions {
  /** Everything up to here is durable and visible; nothing above it is. */
  readonly published: Revision;
  /** The oldest change still readable is the next one. */
  readonly compacted: Revision;
  format(revision: Revision): string;
  /** `text` is a plain decimal above zero; anything else is the caller's mistake. */
  locate(text: string): Located;
}

/** Objects, now or at an earlier revision that history still covers. */
export interface Objects {
  get(key: Key): Promise<StoredObject | undefined>;
  /** Every shard's object of that place; at most `max` of them. */
  find(scope: Scope, max: number): Promise<readonly StoredObject[]>;
  /** Chunks in key order, behind `after`, as they stood at `at`. Throws Refused(Expired) when history no longer covers `at`. */
  list(scope: Scope, range: { at: Revision; after?: Key | undefined }): AsyncIterable<readonly StoredObject[]>;
  /** How many objects lie in the scope behind `after`, counted no further than `max`. */
  count(scope: Scope, range: { at: Revision; after?: Key | undefined; max: number }): Promise<number>;
}

/** The change log. */
export interface History {
  /** Chunks of changes with after < revision ≤ upTo, rising. Throws Refused(Expired) when after < compacted. */
  changes(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Change[]>;
  /** Whether every key that changed since `after` can still be named, though its content may be gone (D4, tombstones). */
  remembers(after: Revision): boolean;
  /** The keys of the scope that changed with after < revision ≤ upTo, deleted ones included, each once; answers as far back as `remembers`. */
  touched(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Key[]>;
}

/** The one way into the store. */
export interface Writer {
  /** Resolves when the outcome is durable and published. */
  submit(mutation: Mutation): Promise<Outcome>;
}

/** Commits as they are published, in order, each in the tick in which it becomes visible. */
export interface Commits {
  subscribe(listener: (commit: Commit) => void): Subscription;
}

export interface Subscription {
  cancel(): void;
}

/** The index from canonical paths to logical clusters. */
export interface CanonicalPaths {
  clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]>;
}

export interface Store extends Revisions, Objects, History, Writer, Commits, CanonicalPaths {
  /** Resolves once what was submitted is decided and the files are closed. */
  close(): Promise<void>;
}

/** How a watch puts objects on the wire. Two watches with the same `id` share every encoded byte (D5). */
export interface Representation {
  readonly id: string;
  /** One event, newline included. `resourceVersion` is the event's own: a DELETED has the delete's. */
  event(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: StoredObject, resourceVersion: string): Uint8Array;
  /** A DELETED for a key whose content is gone: name, namespace and both place annotations. */
  forgotten(key: Key, resourceVersion: string): Uint8Array;
  bookmark(resourceVersion: string, initialEventsEnd: boolean): Uint8Array;
}

/** Time, injected so that tests own it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Runs `task` once after `delayMs`; the result cancels it. */
  after(delayMs: number, task: () => void): () => void;
}
