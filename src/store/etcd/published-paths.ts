/**
 * The canonical paths of logical clusters on shards. A logical cluster has the path that its newest
 * object with a path names. The path depends only on the objects that exist, so it is the same at
 * every server of one etcd.
 */
import { entryOf } from '../../domain/base/entry-of.js';
import type { MovedPath } from '../../domain/change.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import { clusterKeyOf, type Key } from '../../domain/key.js';
import { isClusterEntry } from '../../domain/path-entry.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';

export type ClusterOnShard = Readonly<{ shard: ShardName; cluster: ClusterName }>;

/** The parts of an object that decide the path. `writtenAt`: as in `IndexedObject`. */
export type PathBearer = Readonly<{ path: CanonicalPath | undefined; revision: Revision; writtenAt?: Revision }>;

/**
 * - `bearers`: how many objects name each path; never 0.
 * - `named`: the path of the newest object that names one.
 * - `newest`: the revision since which that object names it.
 * - `owned`: the path in the logical cluster's path entry, which has precedence (PATH-2).
 */
type Entry = {
  readonly cluster: ClusterName;
  readonly bearers: Map<CanonicalPath, number>;
  named: CanonicalPath | undefined;
  newest: Revision;
  owned: CanonicalPath | undefined;
};

export class PublishedPaths {
  /** All objects of the logical cluster on the shard, without one that was just deleted. */
  readonly #objectsIn: (place: ClusterOnShard) => Iterable<PathBearer>;
  readonly #entries = new Map<string, Entry>();
  readonly #byPath = new Map<CanonicalPath, Set<Entry>>();

  constructor(objectsIn: (place: ClusterOnShard) => Iterable<PathBearer>) {
    this.#objectsIn = objectsIn;
  }

  pathOf(place: ClusterOnShard): CanonicalPath | undefined {
    return pathOf(this.#entries.get(clusterKeyOf(place)));
  }

  clustersAt(path: CanonicalPath): readonly ClusterName[] {
    return clustersOf(this.#byPath.get(path) ?? []);
  }

  ownersOf(path: CanonicalPath): readonly ClusterName[] {
    return clustersOf([...(this.#byPath.get(path) ?? [])].filter(({ owned }) => owned === path));
  }

  /** Whether objects name different paths, so that the newest object decides. */
  isContested(place: ClusterOnShard): boolean {
    return (this.#entries.get(clusterKeyOf(place))?.bearers.size ?? 0) > 1;
  }

  /**
   * Since `revision`, the object names `after`; until then it named `before`. Undefined: no path,
   * or no object. During the listing, objects arrive in any order; later, each changed object is
   * the newest.
   */
  changed(
    key: Key,
    { before, after, revision }: Readonly<{ before: CanonicalPath | undefined; after: CanonicalPath | undefined; revision: Revision }>,
  ): MovedPath | undefined {
    if (before === undefined && after === undefined) return undefined;
    const entry = this.#entries.get(clusterKeyOf(key)) ?? this.#enter(key);
    const former = pathOf(entry);
    if (before !== after) {
      if (before !== undefined) count(entry.bearers, before, -1);
      if (after !== undefined) count(entry.bearers, after, 1);
    }
    if (after === undefined) entry.named = this.#remaining(key, entry, before);
    else if (isNewer({ path: after, revision }, { path: entry.named, revision: entry.newest })) entry.named = after;
    if (after !== undefined) entry.newest = Math.max(entry.newest, revision);
    if (isClusterEntry(key.resource)) entry.owned = after;
    if (entry.bearers.size === 0) this.#entries.delete(clusterKeyOf(key));
    return pathOf(entry) === former ? undefined : this.#move(entry, former);
  }

  /** The path that remains after an object that named `before` names none. */
  #remaining(place: ClusterOnShard, { bearers, named }: Entry, before: CanonicalPath | undefined): CanonicalPath | undefined {
    if (bearers.size <= 1) return [...bearers.keys()][0];
    if (before !== named) return named;
    let newest: PathBearer | undefined;
    for (const object of this.#objectsIn(place))
      if (object.path !== undefined && (newest === undefined || isNewer(object, newest))) newest = object;
    return newest?.path;
  }

  #enter(place: ClusterOnShard): Entry {
    const entry: Entry = { cluster: place.cluster, bearers: new Map(), named: undefined, newest: 0, owned: undefined };
    this.#entries.set(clusterKeyOf(place), entry);
    return entry;
  }

  #move(entry: Entry, before: CanonicalPath | undefined): MovedPath {
    const after = pathOf(entry);
    if (before !== undefined) {
      const entries = this.#byPath.get(before);
      entries?.delete(entry);
      if (entries?.size === 0) this.#byPath.delete(before);
    }
    if (after !== undefined) entryOf(this.#byPath, after, () => new Set<Entry>()).add(entry);
    return { before, after };
  }
}

function pathOf(entry: Entry | undefined): CanonicalPath | undefined {
  return entry?.owned ?? entry?.named;
}

function clustersOf(entries: Iterable<Entry>): readonly ClusterName[] {
  return [...new Set([...entries].map(({ cluster }) => cluster))].toSorted();
}

/** Since when the object names its path. The store's own rewrites do not count. */
export function sinceOf({ revision, writtenAt = revision }: Pick<PathBearer, 'revision' | 'writtenAt'>): Revision {
  return writtenAt;
}

/**
 * Another program may write two objects at one revision, and servers may see these in any order. So
 * the one with the lower path counts as newer.
 */
function isNewer(one: PathBearer, other: PathBearer): boolean {
  const difference = sinceOf(one) - sinceOf(other);
  if (difference !== 0) return difference > 0;
  return one.path !== undefined && (other.path === undefined || one.path < other.path);
}

function count(bearers: Map<CanonicalPath, number>, path: CanonicalPath, by: number): void {
  const now = (bearers.get(path) ?? 0) + by;
  if (now > 0) bearers.set(path, now);
  else bearers.delete(path);
}
