/** Canonical paths in memory: for each logical cluster on each shard the last path it was given, as long as it has objects there. */
import type { MovedPath } from '../../domain/change.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import type { ShardName } from '../../domain/shard.js';

export type ClusterPlace = Readonly<{ shard: ShardName; cluster: ClusterName }>;

type Entry = { readonly cluster: ClusterName; objects: number; path: CanonicalPath | undefined };

export class MemoryPaths {
  readonly #entries: Map<string, Entry>;
  readonly #byPath = new Map<CanonicalPath, Set<Entry>>();

  constructor(other?: MemoryPaths) {
    this.#entries = new Map(other === undefined ? [] : [...other.#entries].map(([place, entry]) => [place, { ...entry }]));
    for (const entry of this.#entries.values()) this.#index(entry);
  }

  /** An object there was put, with that path if it names one. */
  put(place: ClusterPlace, path: CanonicalPath | undefined, isNew: boolean): MovedPath | undefined {
    const entry = this.#entries.get(placeOf(place)) ?? { cluster: place.cluster, objects: 0, path: undefined };
    this.#entries.set(placeOf(place), entry);
    if (isNew) entry.objects += 1;
    return path === undefined || path === entry.path ? undefined : this.#move(entry, path);
  }

  /** An object there was deleted. */
  delete(place: ClusterPlace): MovedPath | undefined {
    const entry = this.#entries.get(placeOf(place));
    if (entry === undefined) throw new Error('a deleted object must have been put');
    entry.objects -= 1;
    if (entry.objects > 0) return undefined;
    this.#entries.delete(placeOf(place));
    return entry.path === undefined ? undefined : this.#move(entry, undefined);
  }

  pathOf(place: ClusterPlace): CanonicalPath | undefined {
    return this.#entries.get(placeOf(place))?.path;
  }

  clustersAt(path: CanonicalPath): readonly ClusterName[] {
    const clusters = [...(this.#byPath.get(path) ?? [])].map(({ cluster }) => cluster);
    return [...new Set(clusters)].toSorted();
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

function placeOf({ shard, cluster }: ClusterPlace): string {
  return `${shard}|${cluster}`;
}
