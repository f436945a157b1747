/**
 * All that etcd holds for this cache, as far as it is published here: the index of objects, what shards, slices and links are, and canonical paths. Made of
 * what following brings, and of nothing else, so every server of one etcd comes to the same.
 *
 * Others may write to this etcd too. What cannot be served is passed over and counted: a key that is no object's, a value that is no object of its type. One
 * that replaces an object takes it away.
 */
import type { Log } from '../../diagnostics/log.js';
import type { Change, Commit } from '../../domain/change.js';
import { digestOf } from '../../domain/digest.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import type { FollowedBatch } from './follower.js';
import { ObjectIndex, type IndexedObject } from './object-index.js';
import { formatObjectKey, isOfUpstream, parseObjectKey } from './object-keys.js';
import { PublishedPaths } from './published-paths.js';
import { PublishedShards, type ShardsChange, type Versioned } from './published-shards.js';
import type { RecentBodies } from './recent-bodies.js';
import {
  formatRecordKey,
  isRecordKey,
  parseCacheRecord,
  parseLinkRecord,
  parseServerRecord,
  parseRecordKey,
  parseShardRecord,
  parseSliceRecord,
  type CacheRecord,
  type RecordKey,
  type ServerRecord,
} from './records.js';
import type { KeyValue, WatchEvent } from './rpc.js';
import { readValue, Unreadable } from './stored-values.js';

export type PublishedStateParts = Readonly<{ prefix: string; bodies: RecentBodies; log: Log }>;

/** An object that was written again because a namesake on another shard had gone. */
export type Rewrite = Readonly<{ key: Key; from: Revision; to: Revision }>;

/** `arePeersNew`: something has changed of servers, or the leader has. */
export type PublishedBatch = Readonly<{ commit: Commit; change: ShardsChange; rewrites: readonly Rewrite[]; arePeersNew: boolean }>;

/** What happens at one revision beside the objects. */
type Circumstances = Readonly<{ swept: ReadonlySet<Revision>; rewritten: ReadonlySet<Revision> }>;

const loggedKeysMax = 20;

export class PublishedState {
  readonly objects = new ObjectIndex();
  readonly shards = new PublishedShards();
  readonly paths: PublishedPaths;
  readonly #parts: PublishedStateParts;
  /** By their keys. */
  readonly #unreadable = new Set<string>();
  /** Marks of survivors that are still to be written again. */
  readonly #marks = new Map<string, Revision>();
  #cache: Readonly<{ revision: Revision; record: CacheRecord | undefined }> | undefined;
  #leader: string | undefined;
  #arePeersNew = false;
  readonly #servers = new Map<string, Versioned<ServerRecord>>();
  #revision: Revision = 0;

  constructor(parts: PublishedStateParts) {
    this.#parts = parts;
    this.paths = new PublishedPaths((place) => this.objects.inCluster(place));
  }

  get revision(): Revision {
    return this.#revision;
  }

  /** Which cache this is; undefined where none was ever here. */
  get cache(): Readonly<{ revision: Revision; record: CacheRecord | undefined }> | undefined {
    return this.#cache;
  }

  /** At which revision the present life of the cache has begun. */
  get lifeSince(): Revision {
    return this.#cache?.revision ?? 0;
  }

  /** The id of the server that leads. */
  get leader(): string | undefined {
    return this.#leader;
  }

  /** By their ids. */
  get servers(): ReadonlyMap<string, ServerRecord> {
    return new Map([...this.#servers].map(([id, { record }]) => [id, record]));
  }

  /** How many keys hold something that cannot be served. */
  get unreadable(): number {
    return this.#unreadable.size;
  }

  /** What each mark of a survivor stands for, and its revision. */
  get marks(): ReadonlyMap<string, Revision> {
    return this.#marks;
  }

  /** The last change of every key that is there and known. */
  known(): ReadonlyMap<string, Revision> {
    const found = new Map<string, Revision>();
    const { prefix } = this.#parts;
    const record = (key: RecordKey, revision: Revision): Map<string, Revision> => found.set(formatRecordKey(prefix, key), revision);
    for (const { key, revision } of this.objects.all()) found.set(formatObjectKey(prefix, key), revision);
    for (const { shard } of this.shards.states()) record({ kind: 'shard', shard }, this.shards.shard(shard)?.revision ?? 0);
    for (const { neighbour } of this.shards.links()) record({ kind: 'link', neighbour }, this.shards.link(neighbour)?.revision ?? 0);
    for (const { slice, revision } of this.shards.sliceRecords()) record({ kind: 'slice', slice }, revision);
    for (const [of, revision] of this.#marks) record({ kind: 'rewrite', of }, revision);
    for (const text of this.#unreadable) found.set(text, 0);
    for (const [id, { revision }] of this.#servers) record({ kind: 'server', id }, revision);
    if (this.#leader !== undefined) record({ kind: 'leader' }, 0);
    if (this.#cache !== undefined) record({ kind: 'cache' }, this.#cache.revision);
    return found;
  }

  apply({ revision, events }: FollowedBatch, nowMs: number): PublishedBatch {
    const { prefix } = this.#parts;
    // A listing comes in the order of keys.
    const inOrder = events.toSorted((a, b) => a.kv.revision - b.kv.revision);
    const named = inOrder.map((event) => ({ event, text: textOf(event.kv.key) }));
    const records = named.flatMap(({ event, text }) => {
      const key = parseRecordKey(prefix, text);
      return key === undefined ? [] : [{ event, key }];
    });
    const at = {
      swept: revisionsOf(records, ({ event, key }) => key.kind === 'swept' && event.kind === 'put'),
      rewritten: revisionsOf(records, ({ event, key }) => key.kind === 'rewrite' && event.kind === 'delete'),
    };
    const done = { changes: [] as Change[], movedPaths: [] as string[], swept: new Set<Revision>(), rewrites: [] as Rewrite[] };
    this.#arePeersNew = false;
    for (const { event, key } of records) this.#applyRecord(key, event);
    for (const { event, text } of named) if (!isRecordKey(prefix, text)) this.#applyObject(text, event, { nowMs, at, done });
    this.#revision = revision;
    const { changes, movedPaths, swept, rewrites } = done;
    return { commit: { revision, changes, movedPaths, swept }, change: this.shards.takeChange(), rewrites, arePeersNew: this.#arePeersNew };
  }

  #applyRecord(key: RecordKey, { kind, kv }: WatchEvent): void {
    const value = kind === 'put' ? kv.value : undefined;
    switch (key.kind) {
      case 'cache':
        this.#cache = value && { revision: kv.revision, record: parseCacheRecord(value) };
        return;
      case 'shard':
        return this.shards.shardRecorded(key.shard, value && parseShardRecord(value), kv.revision);
      case 'slice':
        return this.shards.sliceRecorded(key.slice, value && parseSliceRecord(value), kv.revision);
      case 'link':
        return this.shards.linkRecorded(key.neighbour, value && parseLinkRecord(value), kv.revision);
      case 'rewrite':
        if (value === undefined) this.#marks.delete(key.of);
        else this.#marks.set(key.of, kv.revision);
        return;
      case 'server': {
        const server = value && parseServerRecord(value);
        if (server === undefined) this.#servers.delete(key.id);
        else this.#servers.set(key.id, { revision: kv.revision, record: server });
        this.#arePeersNew = true;
        return;
      }
      case 'leader':
        this.#leader = value && textOf(value);
        this.#arePeersNew = true;
        return;
      case 'swept':
        return;
    }
  }

  #applyObject(text: string, event: WatchEvent, { nowMs, at, done }: Readonly<{ nowMs: number; at: Circumstances; done: Done }>): void {
    const { prefix, bodies } = this.#parts;
    const { revision } = event.kv;
    const key = parseObjectKey(prefix, text);
    const object = key === undefined ? undefined : this.#read(key, event);
    if (event.kind === 'put' && object === undefined) this.#passOver(text, key !== undefined);
    else this.#unreadable.delete(text);
    if (key === undefined) return;
    const held = this.objects.get(key);
    if (held === undefined && object === undefined) return;

    const previous = this.#previous(held, event.previous);
    if (object === undefined) {
      this.objects.delete(key);
      bodies.forget(key);
    } else {
      this.objects.set(object.indexed);
      bodies.add(object.stored);
    }
    this.shards.objectChanged(key, held, object?.indexed, nowMs);
    const movedPath = this.paths.changed(key, held?.path, object?.indexed.path);
    const moved = movedPath === undefined ? {} : { movedPath };
    if (movedPath !== undefined) for (const path of [movedPath.before, movedPath.after]) if (path !== undefined) done.movedPaths.push(path);
    if (object === undefined) {
      done.changes.push({ kind: 'delete', key, revision, resourceVersion: String(revision), previous, ...moved });
      if (at.swept.has(revision)) done.swept.add(revision);
    } else {
      done.changes.push({ kind: 'put', key, revision, object: object.stored, created: held === undefined, previous, ...moved });
      if (held !== undefined && at.rewritten.has(revision)) done.rewrites.push({ key, from: held.revision, to: revision });
    }
  }

  #read(key: Key, { kind, kv: { value, revision } }: WatchEvent): Readonly<{ indexed: IndexedObject; stored: StoredObject }> | undefined {
    if (kind === 'delete') return undefined;
    try {
      const { body, path } = readValue(key, value);
      return {
        indexed: { key, revision, bytes: body.bytes.length, digest: digestOf(key, body), path },
        stored: { key, revision, resourceVersion: String(revision), body },
      };
    } catch (error) {
      if (error instanceof Unreadable) return undefined;
      throw error;
    }
  }

  /** What the change replaced: the body in memory, else what etcd sent along, else nothing. */
  #previous(held: IndexedObject | undefined, sent: KeyValue | undefined): () => StoredObject | undefined {
    if (held === undefined) return () => undefined;
    const { key, revision } = held;
    const known = this.#parts.bodies.get(key, revision);
    if (known !== undefined) return () => known;
    if (sent === undefined || sent.revision !== revision) return () => undefined;
    const value = Uint8Array.from(sent.value);
    return () => ({ key, revision, resourceVersion: String(revision), body: readValue(key, value).body });
  }

  #passOver(text: string, isObject: boolean): void {
    if (this.#unreadable.has(text) || isOfUpstream(this.#parts.prefix, text)) return;
    this.#unreadable.add(text);
    if (this.#unreadable.size > loggedKeysMax) return;
    this.#parts.log.warn('etcd.passed-over', {
      key: text,
      why: isObject ? 'its value is no object of its type' : 'it is no key of an object',
    });
  }
}

type Done = { readonly changes: Change[]; readonly movedPaths: string[]; readonly swept: Set<Revision>; readonly rewrites: Rewrite[] };

type Recorded = Readonly<{ event: WatchEvent; key: RecordKey }>;

function revisionsOf(records: readonly Recorded[], isWanted: (record: Recorded) => boolean): ReadonlySet<Revision> {
  return new Set(records.filter(isWanted).map(({ event }) => event.kv.revision));
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString();
}
