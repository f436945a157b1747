/**
 * Resolves a path to the logical cluster that it names, by the entries of domain/path-entry.ts,
 * with the rules of kcp's own proxy:
 *
 *   root:org:team     the first segment is a logical cluster, and each further one a Workspace of
 *                     the one before it
 *   home:alice:team   if no logical cluster is named `home`: the longest beginning, of two segments
 *                     or more, that is the path of a logical cluster without an owner
 *                     beginnings that lead to different shards: a dispute
 *
 * RESOLVE-1 A Workspace counts only on the shard where its parent is. Another shard may have
 *   leftovers of a migration, or make false claims.
 * RESOLVE-2 A logical cluster is on the shard that its Workspace names. Any other shard that claims
 *   the logical cluster is reported and ignored. If only such shards claim it, the logical cluster
 *   is in dispute. If no Workspace names a shard, one shard alone may claim the logical cluster; if
 *   several do, it is in dispute. The order of arrival never decides.
 *   A logical cluster that is requested by name is also in dispute if the path in its own entry
 *   resolves elsewhere.
 *   `root` has no Workspace and does not migrate. kcp creates it on the shard named `root`, and no
 *   other shard has it, even if nothing is known of that shard. kcp keeps the Shard objects in
 *   `root`, so the shard with `root` decides where shards are.
 * RESOLVE-3 The walk always ends, even with false entries. It takes one step for each segment of
 *   the path. Each shard that claims the first segment gives it a path, and each segment of these
 *   paths adds a step.
 */
import { parseCanonicalPath, parseClusterName, rootCluster, type CanonicalPath, type ClusterName } from '../domain/cluster.js';
import type { ClusterEntry, ClusterTarget, WorkspaceEntry } from '../domain/path-entry.js';
import type { Dispute, MissingPath, Resolved } from '../domain/path-resolution.js';
import type { Revision } from '../domain/revision.js';
import { rootShard, type ShardName } from '../domain/shard.js';
import { parsePathSegments, type PathSegments } from './kcp-path.js';

export type EntryOnShard = Readonly<{ shard: ShardName; revision: Revision; entry: ClusterEntry }>;

export interface PathEntries {
  /** Every shard that has an entry of the logical cluster. */
  shardsOf(cluster: ClusterName): Promise<readonly ShardName[]>;
  clusterOn(shard: ShardName, cluster: ClusterName): Promise<EntryOnShard | undefined>;
  workspace(shard: ShardName, parent: ClusterName, name: string): Promise<WorkspaceEntry | undefined>;
  /** Logical clusters without an owner that claim this path. */
  ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]>;
  /**
   * Reports that several shards claim a logical cluster without a migration, or that a shard
   * wrongly claims one.
   */
  conflict(dispute: Dispute): void;
}

type Missing = Readonly<{ kind: 'missing'; on: ShardName | undefined }>;
type Disputed = Extract<MissingPath, { kind: 'disputed' }>;

/** `on`: the only shard that could have the missing entry; undefined if any shard could. */
export type WalkResult = Resolved | Exclude<MissingPath, { kind: 'unknown' | 'uncertain' }> | Missing;

type Active = Readonly<{ kind: 'active'; cluster: ClusterName; shard: ShardName }>;
/** `segmentCount`: how many segments the start covers. */
type Start = Readonly<{ kind: 'start'; active: Active; segmentCount: number }>;
type Placed = Active | Missing | Disputed;

export async function walk(segments: PathSegments, entries: PathEntries): Promise<WalkResult> {
  return follow(segments, entries, headPlace);
}

/** `placeOfHead`: finds the logical cluster that the first segment names. */
async function follow(segments: PathSegments, entries: PathEntries, placeOfHead: typeof headPlace): Promise<WalkResult> {
  const start = await startOf(segments, entries, placeOfHead);
  if (start.kind !== 'start') return start;
  let active: Active = start.active;
  const shards = new Set([active.shard]);
  let unavailable = false;
  for (const name of segments.slice(start.segmentCount)) {
    const workspace = await entries.workspace(active.shard, active.cluster, name);
    if (workspace === undefined) return { kind: 'missing', on: active.shard };
    unavailable ||= workspace.isUnavailable;
    if ('url' in workspace.target) return { kind: 'mount', url: workspace.target.url, unavailable, shards: [...shards] };
    const place = await placeOf(workspace.target, entries);
    if (place.kind !== 'active') return place;
    active = place;
    shards.add(active.shard);
  }
  return { ...active, kind: 'cluster', unavailable, shards: [...shards] };
}

async function startOf(
  segments: PathSegments,
  entries: PathEntries,
  placeOfHead: typeof headPlace,
): Promise<Start | Exclude<WalkResult, Resolved>> {
  const head = parseClusterName(segments[0]);
  const place = head === undefined ? undefined : await placeOfHead(head, entries);
  if (place?.kind === 'disputed' || (place?.kind === 'missing' && head === rootCluster)) return place;
  const begun: Start[] = place?.kind === 'active' ? [{ kind: 'start', active: place, segmentCount: 1 }] : [];
  if (begun[0] !== undefined && head === rootCluster) return begun[0];
  for (let { length: segmentCount } = segments; segmentCount > 1; segmentCount -= 1) {
    const path = parseCanonicalPath(segments.slice(0, segmentCount).join(':'));
    const owners = path === undefined ? [] : await ownersOf(path, entries);
    const [owner] = owners;
    if (owners.length > 1) return { kind: 'ambiguous', clusters: owners.map(({ cluster }) => cluster) };
    if (owner?.kind === 'disputed') return owner;
    if (owner !== undefined) begun.push({ kind: 'start', active: owner, segmentCount });
  }
  const [first] = begun;
  if (first === undefined) return { kind: 'missing', on: undefined };
  // The Workspaces below a start are on the shard of the start (RESOLVE-1). So all starts must be
  // on one shard.
  const shards = [...new Set(begun.map(({ active }) => active.shard))];
  const { active } = begun.find(({ segmentCount }) => segmentCount > 1) ?? first;
  return shards.length === 1 ? first : disputed({ cluster: active.cluster, shards }, entries);
}

/**
 * A logical cluster has the path that its entry on its own shard gives it. Other shards may have
 * outdated entries, or make false claims.
 */
async function ownersOf(path: CanonicalPath, entries: PathEntries): Promise<readonly (Active | Disputed)[]> {
  const owners: (Active | Disputed)[] = [];
  for (const cluster of await entries.ownersOf(path)) {
    const place = await placeOf({ cluster, shard: undefined }, entries);
    if (place.kind === 'disputed') owners.push(place);
    if (place.kind !== 'active') continue;
    const found = await entries.clusterOn(place.shard, cluster);
    if (found?.entry.isParentless === true && found.entry.path === path) owners.push(place);
  }
  return owners;
}

/** `shard`: where the logical cluster should be; undefined if nothing says so. */
async function placeOf({ cluster, shard }: ClusterTarget, entries: PathEntries): Promise<Placed> {
  const claims = await entries.shardsOf(cluster);
  const [first] = claims;
  if (claims.length > 1) await reportClaims({ cluster, shards: claims }, entries);
  if (cluster === rootCluster)
    return claims.includes(rootShard) ? { kind: 'active', cluster, shard: rootShard } : { kind: 'missing', on: rootShard };
  if (first === undefined) return { kind: 'missing', on: shard };
  if (shard === undefined)
    return claims.length === 1 ? { kind: 'active', cluster, shard: first } : { kind: 'disputed', cluster, shards: claims };
  return claims.includes(shard) ? { kind: 'active', cluster, shard } : disputed({ cluster, shards: claims, expected: shard }, entries);
}

/**
 * Each shard that claims the logical cluster gives it a path. A claim whose path resolves elsewhere
 * is ignored. Exactly one claim must remain.
 */
async function headPlace(cluster: ClusterName, entries: PathEntries): Promise<Placed> {
  const claims = await entries.shardsOf(cluster);
  if (claims.length === 0 || cluster === rootCluster) return placeOf({ cluster, shard: undefined }, entries);
  if (claims.length > 1) await reportClaims({ cluster, shards: claims }, entries);
  const possible: ShardName[] = [];
  for (const shard of claims) if (!(await isDenied({ cluster, shard }, entries))) possible.push(shard);
  const [shard] = possible;
  if (shard !== undefined && possible.length === 1) return { kind: 'active', cluster, shard };
  return disputed({ cluster, shards: claims }, entries);
}

/**
 * Whether the path in the shard's entry resolves elsewhere. For the first segment of that path this
 * is not checked again, so that the recursion ends.
 */
async function isDenied({ cluster, shard }: Readonly<{ cluster: ClusterName; shard: ShardName }>, entries: PathEntries): Promise<boolean> {
  const path = (await entries.clusterOn(shard, cluster))?.entry.path;
  const segments = path === undefined ? undefined : parsePathSegments(path);
  if (segments === undefined) return false;
  const walked = await follow(segments, entries, (head) => placeOf({ cluster: head, shard: undefined }, entries));
  switch (walked.kind) {
    case 'cluster':
      return walked.cluster !== cluster || walked.shard !== shard;
    case 'mount':
      return true;
    case 'disputed':
      return walked.cluster === cluster && walked.expected !== undefined;
    default:
      return false;
  }
}

/**
 * While a logical cluster migrates, two shards have an entry, and one or both entries say so. That
 * is no conflict.
 */
async function reportClaims({ cluster, shards }: Dispute, entries: PathEntries): Promise<void> {
  const settled = (await placesOf({ cluster, shards }, entries)).filter(({ entry }) => !entry.isMigrating);
  if (settled.length > 1) entries.conflict({ cluster, shards: settled.map(({ shard }) => shard) });
}

async function placesOf({ cluster, shards }: Dispute, entries: PathEntries): Promise<readonly EntryOnShard[]> {
  return (await Promise.all(shards.map((shard) => entries.clusterOn(shard, cluster)))).filter((place) => place !== undefined);
}

function disputed(dispute: Dispute, entries: PathEntries): Disputed {
  entries.conflict(dispute);
  return { kind: 'disputed', ...dispute };
}
