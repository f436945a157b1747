/** Canonical paths in memory: for each logical cluster on each shard the last path it was given, as long as it has objects there. */
import type { MovedPath } from '../../domain/change.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import { isClusterEntry } from '../../domain/path-entry.js';
import type { ShardName } from '../../domain/shard.js';

export type ClusterPlace = Readonly<{ shard: ShardName; cluster: ClusterName }>;

/** `path`: the one that counts. `owned`: that of its path entry (PATH-2). `named`: that of the newest other object that names one. */
type Entry = {
  readonly cluster: ClusterName;
  objects: number;
  path: CanonicalPath | undefined;
  owned: CanonicalPath | undefined;
  named: CanonicalPath | undefined;
};

export class MemoryPaths {
  readonly #entries: Map<string, Entry>;
  readonly #byPath = new Map<CanonicalPath, Set<Entry>>();

  constructor(other?: MemoryPaths) {
    this.#entries = new Map(other === undefined ? [] : [...other.#entries].map(([place, entry]) => [place, { ...entry }]));
    for (const entry of this.#entries.values()) this.#index(entry);
  }

  /** An object there was put, with that path if it names one. */
  put(key: Key, path: CanonicalPath | undefined, isNew: boolean): MovedPath | undefined {
    const entry = this.#entries.get(placeOf(key)) ?? {
      cluster: key.cluster,
      objects: 0,
      path: undefined,
      owned: undefined,
      named: undefined,
    };
    this.#entries.set(placeOf(key), entry);
    if (isNew) entry.objects += 1;
    if (isClusterEntry(key.resource)) entry.owned = path;
    else entry.named = path ?? entry.named;
    return this.#settle(entry);
  }

  /** An object there was deleted. */
  delete(key: Key): MovedPath | undefined {
    const entry = this.#entries.get(placeOf(key));
    if (entry === undefined) throw new Error('a deleted object must have been put');
    entry.objects -= 1;
    if (isClusterEntry(key.resource)) entry.owned = undefined;
    if (entry.objects > 0) return this.#settle(entry);
    this.#entries.delete(placeOf(key));
    return entry.path === undefined ? undefined : this.#move(entry, undefined);
  }

  pathOf(place: ClusterPlace): CanonicalPath | undefined {
    return this.#entries.get(placeOf(place))?.path;
  }

  clustersAt(path: CanonicalPath): readonly ClusterName[] {
    return clustersOf(this.#byPath.get(path) ?? []);
  }

  ownersOf(path: CanonicalPath): readonly ClusterName[] {
    return clustersOf([...(this.#byPath.get(path) ?? [])].filter(({ owned }) => owned === path));
  }

  #settle(entry: Entry): MovedPath | undefined {
    const path = entry.owned ?? entry.named;
    return path === entry.path ? undefined : this.#move(entry, path);
  }

  #move(entry: Entry, after: CanonicalPath | undefined): MovedPath {
    const before = entry.path;
    if (before !== undefined) this.#byPath.get(before)?.delete(entry);
    entry.path = after;
    this.#index(entry);
    return { before, after };
  }

  #index(entry: Entry): void {
    if (entry.path === undefined) return;
    const entries = this.#byPath.get(entry.path) ?? new Set<Entry>();
    this.#byPath.set(entry.path, entries.add(entry));
  }
}

function clustersOf(entries: Iterable<Entry>): readonly ClusterName[] {
  return [...new Set([...entries].map(({ cluster }) => cluster))].toSorted();
}

function placeOf({ shard, cluster }: ClusterPlace): string {
  return `${shard}|${cluster}`;
}
