/**
 * Writes changes, and updates all that depends on them: the index of current objects, canonical
 * paths, namesakes of deleted objects, and the counts of slices. Part of the committer's
 * transaction.
 *
 * I2 Revisions are gapless: each change takes the last revision + 1, in queue order.
 * I4 For every key, `objects` names the newest put in `changes`. A body is stored only in
 *    `changes`, once.
 */
import assert from 'node:assert/strict';
import type { CanonicalPath } from '../../domain/cluster.js';
import { digestOf, type Digest } from '../../domain/slices/digest.js';
import type { Key } from '../../domain/key.js';
import type { Body } from '../../domain/object.js';
import type { SliceState } from '../../domain/push.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import {
  bodyChecksumOf,
  bodyColumns,
  bodyRowOf,
  checksumOf,
  put,
  verifyBody,
  defineChecksumFunctions,
  tombstone,
  type BodyColumns,
  type ChangeRow,
} from './change-row.js';
import type { Byproduct, PathMove } from './committer-messages.js';
import { Unsound } from './damage.js';
import type { Connection } from './database.js';
import { readMeta } from './life.js';
import { PathTable } from './path-table.js';
import type { Version } from './rows.js';
import type { Counted, SliceTable } from './slice-table.js';
import type { Syncs } from '../syncs.js';

export type RowKey = [resource: number, shard: string, cluster: string, namespace: string, name: string];

/**
 * The object of a key. `bytes`: the size of the body. `versions`: how often the object changed
 * since its create.
 */
export type CurrentObject = Counted & Version & Readonly<{ versions: number }>;

type Put = Readonly<{ body: Body; path: CanonicalPath | undefined; cameOver: SliceState['cameOver'] }>;

/**
 * One version in this many is a milestone, so a reader of the past follows at most this many steps
 * (0004-lives.sql).
 */
const versionsPerMilestone = 16;

export class ChangeWriter {
  readonly #slices: SliceTable;
  readonly #syncs: Syncs;
  readonly #paths: PathTable;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #resources = new Map<string, number>();
  #revision: Revision;
  #logBytes: number;
  #rewritten: Byproduct[] = [];
  #before: Readonly<{ revision: Revision; logBytes: number }>;

  constructor(database: Connection, slices: SliceTable, syncs: Syncs) {
    this.#slices = slices;
    this.#syncs = syncs;
    this.#paths = new PathTable(database);
    this.#statements = prepare(database);
    this.#revision = readMeta(database, 'revision');
    this.#logBytes = readMeta(database, 'log_bytes');
    this.#before = { revision: this.#revision, logBytes: this.#logBytes };
  }

  get revision(): Revision {
    return this.#revision;
  }

  get logBytes(): number {
    return this.#logBytes;
  }

  /** Surviving namesakes rewritten since `open`. */
  get rewritten(): readonly Byproduct[] {
    return this.#rewritten;
  }

  get moves(): readonly PathMove[] {
    return this.#paths.moves;
  }

  /** Begins a commit. */
  open(): void {
    this.#before = { revision: this.#revision, logBytes: this.#logBytes };
    this.#rewritten = [];
    this.#paths.open();
  }

  /** How many changes the commit has made so far. */
  get written(): number {
    return this.#revision - this.#before.revision;
  }

  undo(): void {
    this.#revision = this.#before.revision;
    this.#logBytes = this.#before.logBytes;
    this.#resources.clear();
  }

  shrink(bytes: number): void {
    this.#logBytes -= bytes;
  }

  rowKey(key: Key): RowKey {
    return [this.resource(key.resource), key.shard, key.cluster, key.namespace, key.name];
  }

  current(place: RowKey): CurrentObject | undefined {
    const row = this.#statements.held.get(...place);
    return row && heldOf(row);
  }

  /**
   * As `current`, and whether the body is the same. SQLite itself compares the bytes, and only if
   * lengths and versions are equal, so no body is copied into JavaScript.
   */
  compare(place: RowKey, { bytes, version }: Body): Readonly<{ held: CurrentObject | undefined; isSame: boolean }> {
    const row = this.#statements.compare.get(bytes.length, version, bytes, ...place);
    return row === undefined ? { held: undefined, isSame: false } : { held: heldOf(row), isSame: row[6] === 1 };
  }

  body(place: RowKey): Body | undefined {
    const columns = this.#statements.body.get(...place);
    return columns && verifyBody(bodyRowOf(columns));
  }

  put(key: Key, place: RowKey, { body, path, cameOver }: Put, held: CurrentObject | undefined): Revision {
    const revision = this.#next();
    const { bytes, version, marks } = body;
    const [resource, ...names] = place;
    const replaced = held?.revision ?? 0;
    const checksum = checksumAt(place, { revision, kind: put, replaced });
    this.#statements.appendPut.run(
      revision,
      resource,
      replaced,
      ...names,
      checksum,
      version,
      marks.metadataStart,
      marks.metadataEnd,
      marks.annotationsAt,
      marks.revisionAt,
      bodyChecksumOf(checksum, body),
      bytes,
    );
    const digest = digestOf(key, body);
    const { born, versions } = held === undefined ? { born: revision, versions: 0 } : this.#age(held, revision);
    this.#statements.setCurrent.run(...place, revision, digest.high, digest.low, born, versions);
    this.#logBytes += bytes.length;
    this.#slices.count(key, resource, { bytes: bytes.length, digest, cameOver }, held);
    this.#paths.put(key, path, revision);
    return revision;
  }

  delete(key: Key, place: RowKey, held: CurrentObject): Revision {
    const revision = this.#next();
    const [resource, ...names] = place;
    const checksum = checksumAt(place, { revision, kind: tombstone, replaced: held.revision });
    this.#statements.appendDelete.run(revision, resource, held.revision, ...names, checksum, held.born);
    this.#statements.removeCurrent.run(...place);
    this.#slices.count(key, resource, undefined, held);
    this.#rewriteSurvivor(key, resource);
    this.#paths.delete(key, revision);
    return revision;
  }

  /** The id of a type; its first use assigns the id. */
  resource(resource: Resource): number {
    const text = formatResource(resource);
    const known = this.#resources.get(text);
    if (known !== undefined) return known;
    this.#statements.addResource.run(resource.group, resource.resource, resource.identity);
    const id = this.#statements.resource.get(resource.group, resource.resource, resource.identity);
    assert(id !== undefined, 'a resource that was just added is there');
    this.#resources.set(text, id);
    return id;
  }

  /**
   * Informers' keys have no shard. If a namesake survives on another shard, this rewrites the
   * survivor, so that the informers' last event is a put of it.
   */
  #rewriteSurvivor(key: Key, resource: number): void {
    const survivor = this.#statements.survivor.get(key.cluster, resource, key.namespace, key.name);
    if (survivor === undefined) return;
    const { shard, revision: replaced } = survivor;
    const revision = this.#next();
    const bytes = this.#statements.rewrite.get({ revision, replaced });
    if (bytes === undefined) throw new Unsound(`revision ${replaced} is not the row that was written`);
    this.#logBytes += bytes;
    const { versions } = this.#age(survivor, revision);
    this.#statements.moveCurrent.run(revision, versions, resource, shard, key.cluster, key.namespace, key.name);
    this.#slices.count({ shard, resource: key.resource }, resource, undefined, undefined);
    this.#syncs.rewritten([resource, shard, key.cluster], replaced, revision);
    this.#rewritten.push({ key: { ...key, shard }, revision, replaced });
  }

  /** Counts this revision as one more version of the object. */
  #age({ born, versions }: Pick<CurrentObject, 'born' | 'versions'>, revision: Revision): Pick<CurrentObject, 'born' | 'versions'> {
    if ((versions + 1) % versionsPerMilestone === 0) this.#statements.addMilestone.run(revision, born);
    return { born, versions: versions + 1 };
  }

  #next(): Revision {
    this.#revision += 1;
    return this.#revision;
  }
}

function checksumAt([resource, shard, cluster, namespace, name]: RowKey, { revision, kind, replaced }: Changed): number {
  return checksumOf({ revision, resource, kind, replaced, shard, cluster, namespace, name });
}

type Changed = Pick<ChangeRow, 'revision' | 'kind' | 'replaced'>;

type HeldRow = [revision: Revision, bytes: number, high: number, low: number, born: Revision, versions: number];

function heldOf([revision, bytes, high, low, born, versions]: HeldRow | [...HeldRow, isSame: number]): CurrentObject {
  const digest: Digest = { high, low };
  return { revision, bytes, digest, born, versions };
}

function prepare(database: Connection) {
  defineChecksumFunctions(database);
  const pluck = <Parameters extends unknown[], Result>(sql: string) => database.prepare<Parameters, Result>(sql).pluck();
  return {
    // Every current object has a row, so the join always finds one.
    held: database
      .prepare<
        RowKey,
        HeldRow
      >(/*sql*/ `SELECT o.revision, length(c.body), o.digest_high, o.digest_low, o.born, o.versions FROM objects AS o CROSS JOIN changes AS c ON c.revision = o.revision
               WHERE o.resource = ? AND o.shard = ? AND o.cluster = ? AND o.namespace = ? AND o.name = ?`)
      .raw(),
    body: database
      .prepare<RowKey, BodyColumns>(/*sql*/ `SELECT ${bodyColumns} FROM changes WHERE revision =
               (SELECT revision FROM objects WHERE resource = ? AND shard = ? AND cluster = ? AND namespace = ? AND name = ?)`)
      .raw(),
    compare: database
      .prepare<
        [number, string, Uint8Array, ...RowKey],
        [...HeldRow, isSame: number]
      >(/*sql*/ `SELECT o.revision, length(c.body), o.digest_high, o.digest_low, o.born, o.versions, CASE WHEN length(c.body) = ? AND c.version = ? THEN c.body = ? ELSE 0 END
               FROM objects AS o CROSS JOIN changes AS c ON c.revision = o.revision
               WHERE o.resource = ? AND o.shard = ? AND o.cluster = ? AND o.namespace = ? AND o.name = ?`)
      .raw(),
    appendPut:
      database.prepare(/*sql*/ `INSERT INTO changes (revision, resource, kind, replaced, shard, cluster, namespace, name, checksum, born, version, metadata_start, metadata_end, annotations_at, revision_at, body_checksum, body)
               VALUES (?, ?, ${put}, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)`),
    appendDelete:
      database.prepare(/*sql*/ `INSERT INTO changes (revision, resource, kind, replaced, shard, cluster, namespace, name, checksum, born, version, metadata_start, metadata_end, annotations_at, revision_at, body_checksum, body)
               VALUES (?, ?, ${tombstone}, ?, ?, ?, ?, ?, ?, ?, '', 0, 0, 0, 0, 0, NULL)`),
    // Copies a row only if its checksums are correct.
    rewrite: pluck<
      [{ revision: Revision; replaced: Revision }],
      number
    >(/*sql*/ `INSERT INTO changes (revision, resource, kind, replaced, shard, cluster, namespace, name, checksum, born, version, metadata_start, metadata_end, annotations_at, revision_at, body_checksum, body)
               SELECT @revision, resource, kind, revision, shard, cluster, namespace, name, fresh, born, version, metadata_start, metadata_end, annotations_at, revision_at,
                      body_checksum(fresh, version, body, metadata_start, metadata_end, annotations_at, revision_at), body
               FROM (SELECT *, row_checksum(@revision, resource, kind, revision, shard, cluster, namespace, name) AS fresh FROM changes WHERE revision = @replaced)
               WHERE checksum = row_checksum(revision, resource, kind, replaced, shard, cluster, namespace, name)
                 AND body_checksum = body_checksum(checksum, version, body, metadata_start, metadata_end, annotations_at, revision_at)
               RETURNING length(body)`),
    setCurrent:
      database.prepare(/*sql*/ `INSERT INTO objects (resource, shard, cluster, namespace, name, revision, digest_high, digest_low, born, versions)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (resource, shard, cluster, namespace, name) DO UPDATE SET
                 revision = excluded.revision, digest_high = excluded.digest_high, digest_low = excluded.digest_low,
                 born = excluded.born, versions = excluded.versions`),
    moveCurrent: database.prepare<[Revision, number, ...RowKey]>(
      /*sql*/ `UPDATE objects SET revision = ?, versions = ? WHERE resource = ? AND shard = ? AND cluster = ? AND namespace = ? AND name = ?`,
    ),
    removeCurrent: database.prepare<RowKey>(
      /*sql*/ `DELETE FROM objects WHERE resource = ? AND shard = ? AND cluster = ? AND namespace = ? AND name = ?`,
    ),
    survivor: database.prepare<
      [string, number, string, string],
      Pick<Key, 'shard'> & Omit<CurrentObject, keyof Counted>
    >(/*sql*/ `SELECT shard, revision, born, versions FROM objects INDEXED BY objects_by_cluster
               WHERE cluster = ? AND resource = ? AND namespace = ? AND name = ? ORDER BY revision DESC LIMIT 1`),
    addMilestone: database.prepare<[Revision, Revision]>(/*sql*/ `INSERT INTO milestones (revision, born) VALUES (?, ?)`),
    addResource: database.prepare(/*sql*/ `INSERT INTO resources (api_group, resource, identity) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`),
    resource: pluck<[string, string, string], number>(
      /*sql*/ `SELECT id FROM resources WHERE api_group = ? AND resource = ? AND identity = ?`,
    ),
  };
}
