/**
 * Keeps the objects of one type in memory, by one watch of the cache. A look-up then needs no
 * request for the object.
 *
 *   nothing ──begin──▶ reading ──end──▶ following ◀── changes, bookmarks
 *                         ▲                 │  begin: the watch must list again
 *                         └─────────────────┘
 *
 * W1 The objects are those of one moment of the cache, a resourceVersion. They answer a look-up
 *    only if that moment includes the type's newest change (`hasReached`). While the watch lags or
 *    has ended, look-ups read from the cache. An answer is never older than its freshness report.
 * W2 A cache that restarts with another disk, or with an older state, has another history. Across
 *    histories, a larger resourceVersion is not a later one. So the objects count only if their
 *    resourceVersion is of the cache's present life, or equals that of the type's newest change.
 * W3 A canonical path leads to the objects that name the path themselves (kcp.io/path), as in the
 *    indexes of kcp's own informers. A path that no object names proves nothing. If objects of
 *    several logical clusters name it, only the cache can decide.
 * Bounds: `watchedObjectsMax`, and `watchedBytesMax` of JSON. If a type exceeds a bound, its watch
 *   ends for good, and the cache is asked for each object.
 */
import { entryOf } from '../domain/base/entry-of.js';
import { parseCanonicalPath } from '../domain/cluster.js';
import { unreachable } from '../domain/errors.js';
import { canonicalPathIn } from '../json/object-meta.js';
import { isResourceVersion } from '../domain/revision.js';
import type { Read } from '../kube/kube-reader.js';
import type { SourceObject } from '../kube/source-object.js';
import type { NewestChange } from './freshness-report.js';
import type { ObjectRef } from './object-ref.js';
import type { CachedObject } from './read-answer.js';

export type WatchedTypeOptions = Readonly<{ watchedObjectsMax: number; watchedBytesMax: number }>;

/** `nowhere`: the logical cluster has no such object. `unknown`: only the cache can answer. */
export type Known = Readonly<{ kind: 'found'; object: CachedObject }> | Readonly<{ kind: 'nowhere' | 'unknown' }>;

/** `following`: memory answers look-ups. `full`: the type exceeds the bounds. `bytes`: of JSON. */
export type WatchState = Readonly<{ kind: 'reading' | 'following' | 'full'; objects: number; bytes: number }>;

const countDigits = 10;
const decoder = new TextDecoder();

/** `text`: a copy, because the received bytes are part of a much larger buffer. */
type Kept = Readonly<{ shard: string; cluster: string; path: string | undefined; keys: readonly string[]; text: Uint8Array }>;

export class WatchedType {
  readonly #options: WatchedTypeOptions;
  readonly #closing = new AbortController();
  /**
   * Keyed by logical cluster and name, and by canonical path and name (`keyOf`). A key has several
   * objects if several shards or logical clusters have an object of that name.
   */
  readonly #kept = new Map<string, Set<Kept>>();
  /** How many objects of each logical cluster name a canonical path. */
  readonly #clusters = new Map<string, Map<string, number>>();
  #objects = 0;
  #bytes = 0;
  /** The resourceVersion of the objects; undefined until all of them have been read. */
  #reached: string | undefined;
  /** Undefined until the first object. */
  #isNamespaced: boolean | undefined;
  #isFull = false;

  /** Reads until `close`. `read` must end with its signal, and must never throw. */
  constructor({ read }: Readonly<{ read: (signal: AbortSignal) => AsyncIterable<readonly Read[]> }>, options: WatchedTypeOptions) {
    this.#options = options;
    void this.#follow(read(this.#closing.signal));
  }

  get state(): WatchState {
    const kind = this.#isFull ? 'full' : this.#reached === undefined ? 'reading' : 'following';
    return { kind, objects: this.#objects, bytes: this.#bytes };
  }

  /**
   * Whether the objects include this newest change of the type, and so all objects of the type in
   * the cache.
   */
  hasReached({ resourceVersion, epoch }: NewestChange): boolean {
    const reached = this.#reached;
    if (reached === undefined || !isResourceVersion(resourceVersion)) return false;
    return reached === resourceVersion || (isOfEpoch(reached, epoch) && BigInt(reached) >= BigInt(resourceVersion));
  }

  find({ cluster, namespace = '', name, shard }: ObjectRef): Known {
    if ((this.#clusters.get(cluster)?.size ?? 0) > 1) return { kind: 'unknown' };
    let found: Kept | undefined;
    for (const kept of this.#kept.get(keyOf(cluster, namespace, name)) ?? []) {
      if (shard !== undefined && kept.shard !== shard) continue;
      if (found !== undefined) return { kind: 'unknown' };
      found = kept;
    }
    if (found !== undefined) return { kind: 'found', object: { shard: found.shard, text: decoder.decode(found.text) } };
    const isOfType = this.#isNamespaced === (namespace !== '');
    return { kind: isOfType && parseCanonicalPath(cluster) === undefined ? 'nowhere' : 'unknown' };
  }

  close(): void {
    this.#closing.abort();
    this.#clear();
  }

  async #follow(batches: AsyncIterable<readonly Read[]>): Promise<void> {
    for await (const reads of batches) {
      if (this.#closing.signal.aborted) return;
      for (const read of reads) this.#take(read);
      const { watchedObjectsMax, watchedBytesMax } = this.#options;
      if (this.#objects <= watchedObjectsMax && this.#bytes <= watchedBytesMax) continue;
      this.#isFull = true;
      return this.close();
    }
  }

  #take(read: Read): void {
    switch (read.kind) {
      case 'begin':
        return this.#clear();
      case 'object':
        this.#remove(read.object);
        this.#add(read.object);
        return this.#advance(read.object.resourceVersion);
      case 'deleted':
        this.#remove(read.object);
        return this.#advance(read.object.resourceVersion);
      case 'end':
        this.#reached = read.revision;
        return;
      case 'bookmark':
        return this.#advance(read.revision);
      default:
        unreachable(read);
    }
  }

  #advance(resourceVersion: string): void {
    if (this.#reached !== undefined) this.#reached = resourceVersion;
  }

  #clear(): void {
    this.#kept.clear();
    this.#clusters.clear();
    this.#objects = 0;
    this.#bytes = 0;
    this.#reached = undefined;
  }

  #add({ text, shard, cluster, namespace, name }: SourceObject): void {
    // As in the cache, a text that is no canonical path is ignored. It could equal the name of
    // another logical cluster, and look-ups there would find this object.
    const path = canonicalPathIn(text);
    const keys = (path === undefined ? [cluster] : [cluster, path]).map((place) => keyOf(place, namespace, name));
    const kept = { shard, cluster, path, keys, text: new Uint8Array(text.bytes) };
    this.#count(kept, 1);
    for (const key of keys) entryOf(this.#kept, key, () => new Set<Kept>()).add(kept);
    this.#isNamespaced = namespace !== '';
  }

  #remove({ shard, cluster, namespace, name }: SourceObject): void {
    for (const former of this.#kept.get(keyOf(cluster, namespace, name)) ?? []) {
      if (former.shard !== shard) continue;
      for (const key of former.keys) {
        const all = this.#kept.get(key);
        all?.delete(former);
        if (all?.size === 0) this.#kept.delete(key);
      }
      this.#count(former, -1);
    }
  }

  #count({ cluster, path, text }: Kept, by: 1 | -1): void {
    this.#objects += by;
    this.#bytes += by * text.length;
    if (path === undefined) return;
    const clusters = this.#clusters.get(path) ?? new Map<string, number>();
    const count = (clusters.get(cluster) ?? 0) + by;
    if (count === 0) clusters.delete(cluster);
    else clusters.set(cluster, count);
    if (clusters.size === 0) this.#clusters.delete(path);
    else this.#clusters.set(path, clusters);
  }
}

/** No logical cluster, path or namespace contains the separator. */
function keyOf(place: string, namespace: string, name: string): string {
  return `${place}|${namespace}|${name}`;
}

/**
 * Whether the cache assigned the resourceVersion in this life. It consists of an epoch and ten
 * digits of a count (`store/epochs.ts`).
 */
function isOfEpoch(resourceVersion: string, epoch: string): boolean {
  return isResourceVersion(resourceVersion) && resourceVersion.length === epoch.length + countDigits && resourceVersion.startsWith(epoch);
}
