/**
 * Everything that etcd holds for this cache, as published here: the index of objects, the state of
 * shards, slices and links, and canonical paths. All of it depends only on the follower's batches,
 * so it is the same at every server of one etcd.
 *
 * Other programs may write to this etcd, too. A server skips and counts keys that name no object,
 * and values that are no object of their key. An object whose value becomes unreadable counts as
 * deleted.
 */
import type { Log } from '../../diagnostics/log.js';
import type { Change, Commit } from '../../domain/change.js';
import type { KeptNames } from '../../domain/kept-names.js';
import { formatClientKey, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import type { FollowedBatch } from './follower.js';
import { KeyIndex } from './key-index.js';
import { isOfUpstream, keyText, parseObjectKey } from './object-keys.js';
import { type IndexedObject, ObjectReader, type ReadObject } from './object-reader.js';
import { PublishedPeers } from './published-peers.js';
import { PublishedPaths, sinceOf } from './published-paths.js';
import { PublishedShards, type ShardsChange } from './published-shards.js';
import type { RecentBodies } from './recent-bodies.js';
import {
  isRecordKey,
  parseCacheRecord,
  parseLinkRecord,
  parseRecord,
  parseRecordKey,
  parseShardRecord,
  parseSliceRecord,
  parseWrittenRecord,
  type CacheRecord,
  type RecordKey,
} from './records.js';
import type { KeyValue, WatchEvent } from './rpc.js';
import { readValue } from './stored-values.js';

export type PublishedStateParts = Readonly<{ prefix: string; bodies: RecentBodies; log: Log; keptNames: KeptNames }>;

/**
 * A write that does not confirm the object in a sync. Either the store wrote the object again after
 * the delete of a namesake on another shard, or only kept names changed.
 */
export type Rewrite = Readonly<{ key: Key; from: Revision; to: Revision }>;

/**
 * `arePeersNew`: a server's record or the leader has changed. `replacedBytes`: the size of the body
 * that each change replaced.
 */
export type PublishedBatch = Readonly<{
  commit: Commit;
  change: ShardsChange;
  rewrites: readonly Rewrite[];
  arePeersNew: boolean;
  replacedBytes: ReadonlyMap<Change, number>;
}>;

/**
 * The revisions at which `swept` was put, a rewrite mark was put, and a rewrite mark was deleted.
 */
type Circumstances = Readonly<{ swept: ReadonlySet<Revision>; marked: ReadonlySet<Revision>; rewritten: ReadonlySet<Revision> }>;

export class PublishedState {
  readonly objects = new KeyIndex<IndexedObject>();
  readonly shards = new PublishedShards();
  readonly paths: PublishedPaths;
  readonly peers = new PublishedPeers();
  readonly #parts: PublishedStateParts;
  readonly #reader: ObjectReader;
  readonly #unreadableKeys: UnreadableKeys;
  /** The revision of each stored mark (records.ts, `rewrites/`). */
  readonly #marks = new Map<string, Revision>();
  /**
   * Namesakes to write again without a stored mark, keyed by the mark that they would have. The
   * server that deleted the object did not know of them.
   */
  readonly #unmarkedRewrites = new Map<string, Revision>();
  /**
   * Keyed by the revision of a rewrite, which has only one object (decider.ts N2). The value
   * becomes that object's `writtenAt`. An entry stays until the object arrives.
   */
  readonly #written = new Map<Revision, Revision>();
  #cache: Readonly<{ revision: Revision; record: CacheRecord | undefined }> | undefined;
  #revision: Revision = 0;

  constructor(parts: PublishedStateParts) {
    this.#parts = parts;
    this.#reader = new ObjectReader(parts);
    this.#unreadableKeys = new UnreadableKeys(parts);
    this.paths = new PublishedPaths((place) => this.objects.inCluster(place));
  }

  get revision(): Revision {
    return this.#revision;
  }

  /** Which cache this is; undefined if etcd has no such record. */
  get cache(): Readonly<{ revision: Revision; record: CacheRecord | undefined }> | undefined {
    return this.#cache;
  }

  get unreadable(): number {
    return this.#unreadableKeys.size;
  }

  get marks(): ReadonlyMap<string, Revision> {
    return this.#marks;
  }

  /**
   * The marks of all namesakes to write again, stored or not, with the revisions of the deletes.
   */
  get pendingRewrites(): ReadonlyMap<string, Revision> {
    return new Map([...this.#unmarkedRewrites, ...this.#marks]);
  }

  needsRewrite(mark: string): boolean {
    return this.#marks.has(mark) || this.#unmarkedRewrites.has(mark);
  }

  /** The revision of a key's last change, as published; 0 if the key does not exist. */
  revisionAt(key: Uint8Array): Revision {
    const { prefix } = this.#parts;
    const text = keyText(key);
    const unreadable = this.unreadableAt(text);
    if (unreadable > 0) return unreadable;
    const record = parseRecordKey(prefix, text);
    const object = record === undefined ? parseObjectKey(prefix, text) : undefined;
    if (object !== undefined) return this.objects.get(object)?.revision ?? 0;
    switch (record?.kind) {
      case 'shard':
        return this.shards.shard(record.shard)?.revision ?? 0;
      case 'slice':
        return this.shards.sliceRecord(record.slice)?.revision ?? 0;
      case 'link':
        return this.shards.link(record.neighbour)?.revision ?? 0;
      case 'rewrite':
        return this.#marks.get(record.of) ?? 0;
      case 'fence':
        return this.peers.fenceOf(record.id) ?? 0;
      default:
        return 0;
    }
  }

  /** The revision of a key whose content cannot be read; 0 for any other key. */
  unreadableAt(text: string): Revision {
    return this.#unreadableKeys.revisionAt(text);
  }

  /**
   * Takes a part of the listing, which counts as no change. Called only before the first `apply`.
   */
  load({ revision, events }: FollowedBatch): void {
    const { prefix } = this.#parts;
    for (const event of events) {
      const text = keyText(event.kv.key);
      const record = parseRecordKey(prefix, text);
      if (record !== undefined) this.#applyRecord(record, text, event);
      else if (!isRecordKey(prefix, text)) this.#loadObject(text, event);
    }
    this.shards.takeChange();
    this.peers.takeChange();
    this.#revision = revision;
  }

  apply({ revision, events }: FollowedBatch, nowMs: number): PublishedBatch {
    const { prefix } = this.#parts;
    const named = events.map((event) => ({ event, text: keyText(event.kv.key) }));
    const records = named.flatMap(({ event, text }) => {
      const key = parseRecordKey(prefix, text);
      return key === undefined ? [] : [{ event, key, text }];
    });
    const at = {
      swept: revisionsOf(records, ({ event, key }) => key.kind === 'swept' && event.kind === 'put'),
      marked: revisionsOf(records, ({ event, key }) => key.kind === 'rewrite' && event.kind === 'put'),
      rewritten: revisionsOf(records, ({ event, key }) => key.kind === 'rewrite' && event.kind === 'delete'),
    };
    const done = {
      changes: [] as Change[],
      movedPaths: [] as string[],
      swept: new Set<Revision>(),
      rewrites: [] as Rewrite[],
      replacedBytes: new Map<Change, number>(),
    };
    for (const { event, key, text } of records) this.#applyRecord(key, text, event);
    for (const { event, text } of named) if (!isRecordKey(prefix, text)) this.#applyObject(text, event, { nowMs, at, done });
    this.#revision = revision;
    this.#written.clear();
    const { changes, movedPaths, swept, rewrites, replacedBytes } = done;
    const commit = { revision, changes, movedPaths, swept };
    return { commit, change: this.shards.takeChange(), rewrites, arePeersNew: this.peers.takeChange(), replacedBytes };
  }

  #applyRecord(key: RecordKey, text: string, { kind, kv }: WatchEvent): void {
    const { revision } = kv;
    const value = kind === 'put' ? kv.value : undefined;
    const isUnreadable = value !== undefined && parseRecord(key, value) === undefined;
    if (isUnreadable) this.#unreadableKeys.add(text, key, revision);
    else this.#unreadableKeys.forget(text);
    switch (key.kind) {
      case 'cache':
        this.#cache = value && { revision, record: parseCacheRecord(value) };
        return;
      case 'shard':
        return this.shards.shardRecorded(key.shard, value && parseShardRecord(value), revision);
      case 'slice':
        return this.shards.sliceRecorded(key.slice, value && parseSliceRecord(value), revision);
      case 'link':
        return this.shards.linkRecorded(key.neighbour, value && parseLinkRecord(value), revision);
      case 'rewrite':
        if (value === undefined) this.#marks.delete(key.of);
        else this.#marks.set(key.of, revision);
        return;
      case 'written': {
        const writtenAt = value && parseWrittenRecord(value);
        if (writtenAt !== undefined) this.#written.set(revision, writtenAt);
        return;
      }
      case 'server':
      case 'fence':
      case 'heartbeat':
      case 'leader':
        return this.peers.recorded(key, value, kv);
      case 'swept':
        return;
    }
  }

  #loadObject(text: string, event: WatchEvent): void {
    const { bodies } = this.#parts;
    const { revision, value } = event.kv;
    const key = this.#reader.keyOf(text);
    // Most bodies of a large store are only parsed and not kept.
    const isKept = bodies.fits(value.length);
    const object = key && this.#read(key, event.kv, isKept);
    if (key === undefined || object === undefined) return this.#unreadableKeys.add(text, key, revision);
    this.objects.set(object.indexed);
    if (isKept) bodies.add(object.stored);
    this.shards.objectChanged(key, undefined, object.indexed, 0);
    this.paths.changed(key, { before: undefined, after: object.indexed.path, revision: sinceOf(object.indexed) });
  }

  #applyObject(text: string, event: WatchEvent, { nowMs, at, done }: Readonly<{ nowMs: number; at: Circumstances; done: Done }>): void {
    const { bodies } = this.#parts;
    const { revision } = event.kv;
    const isPut = event.kind === 'put';
    const key = this.#reader.keyOf(text);
    const object = key && isPut ? this.#read(key, event.kv) : undefined;
    if (isPut && object === undefined) this.#unreadableKeys.add(text, key, revision);
    else this.#unreadableKeys.forget(text);
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
    this.#recordNamesakes(key, { isThere: object !== undefined, revision, isMarked: at.marked.has(revision) });
    this.shards.objectChanged(key, held, object?.indexed, nowMs);
    const movedPath = this.paths.changed(key, {
      before: held?.path,
      after: object?.indexed.path,
      revision: sinceOf(object?.indexed ?? { revision }),
    });
    const moved = movedPath === undefined ? {} : { movedPath };
    if (movedPath !== undefined) for (const path of [movedPath.before, movedPath.after]) if (path !== undefined) done.movedPaths.push(path);
    const change: Change =
      object === undefined
        ? { kind: 'delete', key, revision, resourceVersion: String(revision), previous, ...moved }
        : { kind: 'put', key, revision, object: object.stored, created: held === undefined, previous, ...moved };
    done.changes.push(change);
    if (held !== undefined) done.replacedBytes.set(change, held.bytes);
    if (object === undefined && at.swept.has(revision)) done.swept.add(revision);
    if (object !== undefined && held !== undefined && (at.rewritten.has(revision) || at.swept.has(revision)))
      done.rewrites.push({ key, from: held.revision, to: revision });
  }

  /**
   * Finds namesakes to write again. Informers' keys lack the shard, so namesakes replace each other
   * in informers' caches. Such a cache ends up wrong only if the last change is a delete.
   */
  #recordNamesakes(key: Key, { isThere, revision, isMarked }: Readonly<{ isThere: boolean; revision: Revision; isMarked: boolean }>): void {
    if (isThere && this.#unmarkedRewrites.size === 0) return;
    const { resource, cluster, namespace, name } = key;
    const isLeft = !isThere && this.objects.valuesAt({ ...resource, shard: '*', cluster, namespace, name }).length > 0;
    if (!isLeft) this.#unmarkedRewrites.delete(formatClientKey(key));
    else if (!isMarked) this.#unmarkedRewrites.set(formatClientKey(key), revision);
  }

  #read(key: Key, kv: KeyValue, isBodyKept?: boolean): ReadObject | undefined {
    const object = this.#reader.read(key, kv, isBodyKept);
    const writtenAt = this.#written.get(kv.revision);
    return object === undefined || writtenAt === undefined ? object : { ...object, indexed: { ...object.indexed, writtenAt } };
  }

  /** The object that the change replaced: from memory, else as etcd sent it, else undefined. */
  #previous(held: IndexedObject | undefined, sent: KeyValue | undefined): () => StoredObject | undefined {
    if (held === undefined) return () => undefined;
    const { key, revision } = held;
    const known = this.#parts.bodies.get(key, revision);
    if (known !== undefined) return () => known;
    if (sent === undefined || sent.revision !== revision) return () => undefined;
    const value = Uint8Array.from(sent.value);
    return () => ({ key, revision, resourceVersion: String(revision), body: readValue(key, value).body });
  }
}

type Done = Readonly<{
  changes: Change[];
  movedPaths: string[];
  swept: Set<Revision>;
  rewrites: Rewrite[];
  replacedBytes: Map<Change, number>;
}>;

type Recorded = Readonly<{ event: WatchEvent; key: RecordKey; text: string }>;

function revisionsOf(records: readonly Recorded[], isWanted: (record: Recorded) => boolean): ReadonlySet<Revision> {
  return new Set(records.filter(isWanted).map(({ event }) => event.kv.revision));
}

const loggedMax = 20;

/** The keys that cannot be served, each with its revision. The first `loggedMax` are logged. */
class UnreadableKeys {
  readonly #prefix: string;
  readonly #log: Log;
  readonly #revisions = new Map<string, Revision>();

  constructor({ prefix, log }: Readonly<{ prefix: string; log: Log }>) {
    this.#prefix = prefix;
    this.#log = log;
  }

  get size(): number {
    return this.#revisions.size;
  }

  revisionAt(text: string): Revision {
    return this.#revisions.get(text) ?? 0;
  }

  /**
   * `key`: undefined if it could not be parsed. Ignores keys that kcp's cache server keeps for
   * itself.
   */
  add(text: string, key: Key | RecordKey | undefined, revision: Revision): void {
    if (isOfUpstream(this.#prefix, text)) return;
    const isNew = !this.#revisions.has(text);
    this.#revisions.set(text, revision);
    if (isNew && this.#revisions.size <= loggedMax) this.#log.warn('etcd.key-skipped', { key: text, why: whyNot(key) });
  }

  forget(text: string): void {
    this.#revisions.delete(text);
  }
}

function whyNot(key: Key | RecordKey | undefined): string {
  if (key === undefined) return 'it is not the key of an object';
  return 'kind' in key ? 'its value is not a record of this engine' : 'its value is not an object of that key';
}
