/**
 * Objects and canonical paths at the published revision. The database may be ahead of that
 * revision, because a commit is durable before it is published. If a row is too new, the reader
 * follows the rows that it replaced.
 */
import assert from 'node:assert/strict';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Clock } from '../../domain/ports.js';
import type { Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { ShardName } from '../../domain/shard.js';
import type { CanonicalPaths, Objects, Revisions, Snapshot } from '../../domain/store-port.js';
import { assertCovered, type SnapshotPins } from '../compactor.js';
import type { SnapshotLimits } from '../store-options.js';
import type { Connection } from './database.js';
import { summedColumns, tombstone, type ChecksummedRow } from './change-row.js';
import type { RecentObjects } from './recent-objects.js';
import type { Rows, Version } from './rows.js';
import { SqliteSnapshot } from './snapshot.js';
import type { Walks } from './walks.js';

/** `count` gives up on a type with more identities than this. */
const countedStretchesMax = 100;

type Deleted = ChecksummedRow & Version;

export type ReaderParts = Readonly<{
  rows: Rows;
  walks: Walks;
  recent: RecentObjects;
  revisions: Revisions;
  pins: SnapshotPins;
  clock: Clock;
  turn: () => Promise<void>;
}>;

export type ReaderLimits = Readonly<{
  /** The most changes of one commit, and so the most that are durable but not yet published. */
  commitMax: number;
  snapshot: SnapshotLimits;
}>;

export class Reader implements Objects, CanonicalPaths {
  readonly #parts: ReaderParts;
  readonly #limits: ReaderLimits;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(parts: ReaderParts, limits: ReaderLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#statements = prepare(parts.rows.database);
  }

  async get(key: Key): Promise<StoredObject | undefined> {
    return this.#parts.recent.current(key) ?? this.#onDisk(key);
  }

  async find(scope: Scope): Promise<readonly StoredObject[]> {
    const { cluster, shard, group, resource, identity, namespace, name } = scope;
    assert(cluster !== '*' && namespace !== undefined && name !== undefined, 'a place to find names cluster, namespace and name');
    if (shard !== '*' && identity !== '*') {
      const only = this.#onDisk({ resource: { group, resource, identity }, shard, cluster, namespace, name });
      return only === undefined ? [] : [only];
    }
    return this.#parts.rows.read(() => {
      const standing = this.#parts.rows
        .resourceIds(scope)
        .flatMap((id) =>
          this.#statements.shardsWith
            .all(cluster, id, namespace, name)
            .map((shard) => ({ resource: this.#parts.rows.resource(id), shard, cluster, namespace, name }) as Key),
        );
      const keys = [...standing, ...this.#deletedUnpublished(scope).map((row) => this.#parts.rows.key(row))].filter((key) =>
        matches(scope, key),
      );
      const distinct = new Map(keys.map((key) => [`${key.resource.identity}|${key.shard}`, key]));
      return [...distinct.values()].flatMap((key) => this.#get(key) ?? []);
    });
  }

  async shardsWith({ resource, cluster, namespace, name }: Omit<Key, 'shard'>): Promise<readonly ShardName[]> {
    const [id] = this.#parts.rows.resourceIds(resource);
    return id === undefined ? [] : (this.#statements.shardsWith.all(cluster, id, namespace, name) as ShardName[]);
  }

  snapshot(scope: Scope, revision: Revision): Snapshot {
    const { rows, walks, revisions, pins, clock, turn } = this.#parts;
    const covered = pins.cover(revisions, revision, clock.now());
    return new SqliteSnapshot(scope, revision, { rows, walks, ...covered, clock, turn }, this.#limits.snapshot);
  }

  async count(scope: Scope, after: Key | undefined, max: number): Promise<number | undefined> {
    let [looked, counted, stretches] = [0, 0, 0];
    for (const keyRange of this.#parts.walks.stretches(scope, after, max + 1)) {
      const found = this.#parts.walks.count({ ...keyRange, rowsMax: max - looked + 1 });
      looked += found.looked;
      counted += found.counted;
      stretches += 1;
      if (looked > max || stretches > countedStretchesMax) return undefined;
    }
    return counted;
  }

  async clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#statements.clustersAt.all(path) as ClusterName[];
  }

  async ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#statements.ownersOf.all(path) as ClusterName[];
  }

  async pathsOf(
    places: readonly Readonly<{ shard: ShardName; cluster: ClusterName }>[],
    at?: Revision,
  ): Promise<readonly (CanonicalPath | undefined)[]> {
    if (at !== undefined) assertCovered(this.#parts.revisions, at);
    const { pathOf, pathBeforeMove } = this.#statements;
    return this.#parts.rows.read(() =>
      places.map(({ shard, cluster }) => {
        const before = at === undefined ? undefined : pathBeforeMove.get(shard, cluster, at);
        if (before === undefined) return pathOf.get(shard, cluster);
        return before === '' ? undefined : before;
      }),
    );
  }

  async resources(): Promise<readonly Resource[]> {
    return this.#statements.resources.all();
  }

  #onDisk(key: Key): StoredObject | undefined {
    return this.#current(key) ?? this.#parts.rows.read(() => this.#get(key));
  }

  /**
   * The current object, by two reads without a transaction. Nearly every read ends here. Returns
   * undefined if the caller must use `#get`: there is no object, an unpublished commit wrote it, or
   * a commit removed it between the reads.
   */
  #current(key: Key): StoredObject | undefined {
    const [id] = this.#parts.rows.resourceIds(key.resource);
    if (id === undefined) return undefined;
    const current = this.#statements.current.get(id, key.shard, key.cluster, key.namespace, key.name);
    return current === undefined || current > this.#parts.revisions.published ? undefined : this.#parts.rows.objectOf(key, current);
  }

  #get(key: Key): StoredObject | undefined {
    const [id] = this.#parts.rows.resourceIds(key.resource);
    if (id === undefined) return undefined;
    const published = this.#parts.revisions.published;
    const current = this.#statements.version.get(id, key.shard, key.cluster, key.namespace, key.name);
    if (current !== undefined && current.revision <= published) return this.#parts.rows.objectAt(key, current.revision);
    const later = this.#deletedUnpublished({ ...key, ...key.resource })[0] ?? current;
    const held = later === undefined ? undefined : this.#parts.rows.revisionAt(later, published);
    return held === undefined ? undefined : this.#parts.rows.objectAt(key, held);
  }

  /**
   * Deletes that are durable but not published, in rising revision. Their keys may have objects
   * again.
   */
  #deletedUnpublished(scope: Scope): readonly Deleted[] {
    const after = this.#parts.revisions.published;
    return this.#parts.rows
      .verifyRows(this.#statements.deletedSince.all(after, this.#limits.commitMax), { after })
      .filter((row) => matches(scope, this.#parts.rows.key(row)));
  }
}

function prepare(database: Connection) {
  return {
    current: database
      .prepare<[number, string, string, string, string], Revision>(
        /*sql*/ `SELECT revision FROM objects WHERE resource = ? AND shard = ? AND cluster = ? AND namespace = ? AND name = ?`,
      )
      .pluck(),
    version: database.prepare<[number, string, string, string, string], Version>(
      /*sql*/ `SELECT revision, born FROM objects WHERE resource = ? AND shard = ? AND cluster = ? AND namespace = ? AND name = ?`,
    ),
    deletedSince: database.prepare<
      [Revision, number],
      Deleted
    >(/*sql*/ `SELECT ${summedColumns}, born FROM changes INDEXED BY changes_tombstones
               WHERE kind = ${tombstone} AND revision > ? ORDER BY revision LIMIT ?`),
    shardsWith: database
      .prepare<[string, number, string, string], string>(
        /*sql*/ `SELECT shard FROM objects INDEXED BY objects_by_cluster WHERE cluster = ? AND resource = ? AND namespace = ? AND name = ? ORDER BY shard`,
      )
      .pluck(),
    clustersAt: database
      .prepare<[string], string>(/*sql*/ `SELECT DISTINCT cluster FROM paths INDEXED BY paths_by_path WHERE path = ? ORDER BY cluster`)
      .pluck(),
    ownersOf: database
      .prepare<[string], string>(
        /*sql*/ `SELECT DISTINCT cluster FROM paths INDEXED BY paths_owned WHERE path = ? AND owned = 1 ORDER BY cluster`,
      )
      .pluck(),
    pathOf: database.prepare<[string, string], CanonicalPath>(/*sql*/ `SELECT path FROM paths WHERE shard = ? AND cluster = ?`).pluck(),
    pathBeforeMove: database
      .prepare<[string, string, Revision], CanonicalPath | ''>(
        /*sql*/ `SELECT before FROM path_moves INDEXED BY path_moves_by_place WHERE shard = ? AND cluster = ? AND revision > ? ORDER BY revision LIMIT 1`,
      )
      .pluck(),
    resources: database.prepare<[], Resource>(/*sql*/ `SELECT api_group AS "group", resource, identity FROM resources AS r
               WHERE EXISTS (SELECT 1 FROM objects WHERE resource = r.id) ORDER BY id`),
  };
}
