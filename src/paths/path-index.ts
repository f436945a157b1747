/**
 * Resolves paths by the published path entries, which it reads from the store through the index of
 * objects by logical cluster.
 *
 * INDEX-1 The answer is `unknown` only if a walk finds nothing after every shard that could have
 *   the path was reported whole. So a missing path is walked again after the report: an entry may
 *   have arrived in between.
 * INDEX-2 A resolved path is remembered until any entry changes, because every request of a front
 *   door resolves one.
 *
 * Bounds: one report on all shards in `reportAgeMaxMs`, however many callers need one; `foundMax`
 * remembered paths, of at most 2,048 characters each.
 */
import type { ClusterName } from '../domain/cluster.js';
import type { Key } from '../domain/key.js';
import type { Body } from '../domain/object.js';
import {
  clusterEntries,
  clusterEntryName,
  parsePathEntry,
  workspaceEntries,
  type PathEntry,
  type WorkspaceEntry,
} from '../domain/path-entry.js';
import type { PathAnswer, PathFreshness, PathResolution, Resolved } from '../domain/path-resolution.js';
import { mustParse } from '../domain/parsed.js';
import type { Freshness, Paths } from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';
import type { Objects } from '../domain/store-port.js';
import type { ShardName } from '../domain/shard.js';
import { provesAbsence } from '../domain/type-freshness.js';
import { parsePathSegments } from './kcp-path.js';
import { walk, type EntryOnShard, type PathEntries, type WalkResult } from './resolve.js';

export type PathIndexParts = Readonly<{
  objects: Pick<Objects, 'get' | 'shardsWith'>;
  ownersOf: PathEntries['ownersOf'];
  freshness: Pick<Freshness, 'ofType' | 'ofTypeLately'>;
  /** The revision of the newest change to entries of either type. */
  changedAt: () => Revision;
  conflict: PathEntries['conflict'];
}>;

/**
 * `lacking`: known shards whose entries may be missing here. An empty list alone proves nothing,
 * because the cache may not know all shards.
 */
type Report = Readonly<{ isWhole: boolean; lacking: readonly ShardName[] }>;

const reportAgeMaxMs = 100;
const foundMax = 10_000;
/** Results of a pure function. While the store keeps a body in memory, its entry stays here. */
const entriesOfBodies = new WeakMap<Body, PathEntry>();

export class PathIndex implements Paths {
  readonly #parts: PathIndexParts;
  readonly #entries: PathEntries;
  /** Keyed by the requested path; the oldest first. */
  readonly #found = new Map<string, Resolved>();
  /** The newest change that `#found` reflects. */
  #foundAt: Revision | undefined;

  constructor(parts: PathIndexParts) {
    this.#parts = parts;
    this.#entries = {
      shardsOf: (cluster) => parts.objects.shardsWith(clusterPlace(cluster)),
      clusterOn: (shard, cluster) => this.#clusterOn(shard, cluster),
      workspace: (shard, parent, name) => this.#workspace(shard, parent, name),
      ownersOf: parts.ownersOf,
      conflict: parts.conflict,
    };
  }

  async resolve(text: string): Promise<PathResolution> {
    const segments = parsePathSegments(text);
    if (segments === undefined) return { kind: 'unknown' };
    const changedAt = this.#parts.changedAt();
    if (changedAt !== this.#foundAt) this.#found.clear();
    this.#foundAt = changedAt;
    // A new string, because `text` may be part of the request's URL, and would keep the whole URL
    // in memory.
    const path = segments.join(':');
    const found = this.#found.get(path);
    if (found !== undefined) return found;
    const walked = await walk(segments, this.#entries);
    if (isFound(walked) && this.#parts.changedAt() === changedAt) this.#remember(path, walked);
    if (walked.kind !== 'missing') return walked;
    const { isWhole, lacking } = await (walked.on === undefined ? this.#reportOnAll() : this.#reportOn(walked.on));
    const again = await walk(segments, this.#entries);
    if (again.kind !== 'missing') return again;
    return isWhole && again.on === walked.on ? { kind: 'unknown' } : { kind: 'uncertain', shards: lacking };
  }

  async answer(text: string): Promise<PathAnswer> {
    const before = await this.resolve(text);
    if (!isFound(before)) return before;
    const freshness = await Promise.all(before.shards.map((shard) => this.#freshnessOf(shard)));
    const after = await this.resolve(text);
    if (!isFound(after)) return after;
    const known = freshness.filter(({ shard }) => after.shards.includes(shard));
    if (after.kind === 'mount') return { ...after, freshness: known };
    return { ...after, path: (await this.#clusterOn(after.shard, after.cluster))?.entry.path, freshness: known };
  }

  #remember(path: string, found: Resolved): void {
    this.#found.set(path, found);
    const [oldest] = this.#found.keys();
    if (this.#found.size > foundMax && oldest !== undefined) this.#found.delete(oldest);
  }

  async #clusterOn(shard: ShardName, cluster: ClusterName): Promise<EntryOnShard | undefined> {
    const found = await this.#parts.objects.get({ shard, ...clusterPlace(cluster) });
    if (found === undefined) return undefined;
    const entry = entryOf(found.key, found.body);
    return entry.kind === 'cluster' ? { shard, revision: found.revision, entry } : undefined;
  }

  async #workspace(shard: ShardName, cluster: ClusterName, name: string): Promise<WorkspaceEntry | undefined> {
    const found = await this.#parts.objects.get({ resource: workspaceEntries, shard, cluster, namespace: '', name });
    const entry = found === undefined ? undefined : entryOf(found.key, found.body);
    return entry?.kind === 'workspace' ? entry : undefined;
  }

  async #reportOn(shard: ShardName): Promise<Report> {
    const { current } = await this.#freshnessOf(shard);
    return { isWhole: current, lacking: current ? [] : [shard] };
  }

  async #freshnessOf(shard: ShardName): Promise<PathFreshness> {
    const reports = await Promise.all([clusterEntries, workspaceEntries].map((type) => this.#parts.freshness.ofType({ ...type, shard })));
    const lags = reports.map(({ shards: [only] }) => only?.lagMs ?? null);
    const lagMs = lags.reduce((worst, lag) => (worst === null || lag === null ? null : Math.max(worst, lag)), 0);
    return { shard, current: reports.every(({ whole }) => whole), lagMs };
  }

  /** Any shard may have the entry of a logical cluster. */
  async #reportOnAll(): Promise<Report> {
    const { whole, shards } = (await this.#parts.freshness.ofTypeLately(clusterEntries, reportAgeMaxMs)).report;
    return { isWhole: whole, lacking: shards.filter((shard) => !provesAbsence(shard)).map(({ shard }) => shard) };
  }
}

function clusterPlace(cluster: ClusterName): Omit<Key, 'shard'> {
  return { resource: clusterEntries, cluster, namespace: '', name: clusterEntryName };
}

function isFound(resolution: PathResolution | WalkResult): resolution is Resolved {
  return resolution.kind === 'cluster' || resolution.kind === 'mount';
}

/** The parse cannot fail, because every entry was checked on arrival. */
function entryOf({ resource, name }: Key, body: Body): PathEntry {
  const known = entriesOfBodies.get(body);
  if (known !== undefined) return known;
  const entry = mustParse(parsePathEntry(resource, name, body.bytes));
  entriesOfBodies.set(body, entry);
  return entry;
}
