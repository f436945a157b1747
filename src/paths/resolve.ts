/**
 * From a path to the logical cluster that it names, by the entries of domain/path-entry.ts, with the rules of kcp's own proxy:
 *
 *   root:org:team      the first segment is a logical cluster, and each further one a Workspace of what came before it
 *   home:alice:team    if there is no such logical cluster: the longest beginning, of two segments or more, that one without an owner has as its path
 *
 * RESOLVE-1 A Workspace counts only on the shard where its parent is active: another shard may have what a migration left, or claim what it has not.
 * RESOLVE-2 A logical cluster is active on the one shard where it is not migrating. If it migrates everywhere, any will do, for that shard refuses
 *    requests itself. If several claim it, one whose entries are current goes before one whose are not, then the one that changed last.
 *    `root` does not migrate: of several that claim it the shard named `root` has it, or the one that has claimed it longest, because where that is decides
 *    whose word counts about where shards are.
 * RESOLVE-3 It ends after one step for each segment, whatever the entries say.
 */
import { parseCanonicalPath, parseClusterName, rootCluster, type CanonicalPath, type ClusterName } from '../domain/cluster.js';
import type { ClusterEntry, WorkspaceEntry } from '../domain/path-entry.js';
import type { MissingPath, Resolved } from '../domain/path-resolution.js';
import type { Revision } from '../domain/revision.js';
import { rootShard, type ShardName } from '../domain/shard.js';
import type { PathSegments } from './kcp-path.js';

/** The entry of a logical cluster on one shard. */
export type ClusterPlace = Readonly<{ shard: ShardName; revision: Revision; entry: ClusterEntry }>;

/** Entries, as they are published. */
export interface PathEntries {
  /** Every shard that has an entry of the logical cluster. */
  shardsOf(cluster: ClusterName): Promise<readonly ShardName[]>;
  clusterOn(shard: ShardName, cluster: ClusterName): Promise<ClusterPlace | undefined>;
  workspace(shard: ShardName, parent: ClusterName, name: string): Promise<WorkspaceEntry | undefined>;
  /** Logical clusters without an owner that have this path. */
  ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]>;
  /** Whether everything is here that the shard has of both types. */
  isCurrent(shard: ShardName): Promise<boolean>;
  /** A logical cluster is active on several shards, which ought not to be. */
  conflict(cluster: ClusterName, shards: readonly ShardName[]): void;
}

/** `on`: the one shard that could have what is missing; undefined: any shard. */
export type Walked = Resolved | Extract<MissingPath, { kind: 'ambiguous' }> | Readonly<{ kind: 'missing'; on: ShardName | undefined }>;

type Active = Readonly<{ cluster: ClusterName; shard: ShardName }>;

export async function walk(segments: PathSegments, entries: PathEntries): Promise<Walked> {
  const start = await startOf(segments, entries);
  if ('kind' in start) return start;
  let { active } = start;
  const shards = new Set([active.shard]);
  let unavailable = false;
  for (const name of segments.slice(start.length)) {
    const workspace = await entries.workspace(active.shard, active.cluster, name);
    if (workspace === undefined) return { kind: 'missing', on: active.shard };
    unavailable ||= workspace.isUnavailable;
    if ('url' in workspace.target) return { kind: 'mount', url: workspace.target.url, unavailable, shards: [...shards] };
    const { cluster } = workspace.target;
    const shard = await activeShard(cluster, entries);
    if (shard === undefined) return { kind: 'missing', on: undefined };
    active = { cluster, shard };
    shards.add(shard);
  }
  return { kind: 'cluster', ...active, unavailable, shards: [...shards] };
}

/** Where the walk begins, and how many segments that takes. */
async function startOf(segments: PathSegments, entries: PathEntries): Promise<Readonly<{ active: Active; length: number }> | Walked> {
  const head = parseClusterName(segments[0]);
  const shard = head === undefined ? undefined : await activeShard(head, entries);
  if (head !== undefined && shard !== undefined) return { active: { cluster: head, shard }, length: 1 };
  for (let { length } = segments; length > 1; length -= 1) {
    const path = parseCanonicalPath(segments.slice(0, length).join(':'));
    if (path === undefined) continue;
    const owners = await activeOwners(path, entries);
    const [active] = owners;
    if (active === undefined) continue;
    return owners.length > 1 ? { kind: 'ambiguous', clusters: owners.map(({ cluster }) => cluster) } : { active, length };
  }
  return { kind: 'missing', on: undefined };
}

/** A logical cluster has what its entry says where it is active: another shard may have what it was, or claim what it is not. */
async function activeOwners(path: CanonicalPath, entries: PathEntries): Promise<readonly Active[]> {
  const owners: Active[] = [];
  for (const cluster of await entries.ownersOf(path)) {
    const shard = await activeShard(cluster, entries);
    const place = shard === undefined ? undefined : await entries.clusterOn(shard, cluster);
    if (shard !== undefined && place?.entry.isParentless === true && place.entry.path === path) owners.push({ cluster, shard });
  }
  return owners;
}

/** Nearly every logical cluster is on one shard, and then nothing of its entry matters here. */
async function activeShard(cluster: ClusterName, entries: PathEntries): Promise<ShardName | undefined> {
  const shards = await entries.shardsOf(cluster);
  if (shards.length < 2) return shards[0];
  const places = (await Promise.all(shards.map((shard) => entries.clusterOn(shard, cluster)))).filter((place) => place !== undefined);
  const settled = places.filter(({ entry }) => !entry.isMigrating);
  if (settled.length < 2) return (settled[0] ?? newest(places))?.shard;
  entries.conflict(
    cluster,
    settled.map(({ shard }) => shard),
  );
  if (cluster === rootCluster) return (settled.find(({ shard }) => shard === rootShard) ?? oldest(settled))?.shard;
  const current: ClusterPlace[] = [];
  for (const place of settled) if (await entries.isCurrent(place.shard)) current.push(place);
  return newest(current.length > 0 ? current : settled)?.shard;
}

function oldest(places: readonly ClusterPlace[]): ClusterPlace | undefined {
  return places.toSorted((one, other) => one.revision - other.revision)[0];
}

function newest(places: readonly ClusterPlace[]): ClusterPlace | undefined {
  return places.toSorted((one, other) => other.revision - one.revision)[0];
}
