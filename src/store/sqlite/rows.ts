/**
 * Reads rows of the change log and makes objects of them, for all readers: objects, snapshots,
 * change log.
 */
import assert from 'node:assert/strict';
import { formatClientKey, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { Scope } from '../../domain/scope.js';
import type { Revisions } from '../../domain/store-port.js';
import { bodyColumns, bodyRowOf, verifyRow, verifyBody, type BodyColumns, type ChangeRow, type ChecksummedRow } from './change-row.js';
import { isDamage, Unsound } from './damage.js';
import type { Connection } from './database.js';
import type { RecentObjects } from './recent-objects.js';

/**
 * A revision of a key, and the revision of the create that began this life of the key
 * (0004-lives.sql).
 */
export type Version = Readonly<{ revision: Revision; born: Revision }>;

/**
 * Rows with after < revision ≤ upTo, in rising order, or falling if `isFalling`. `resource`: only
 * of this type.
 */
type RowRange = Readonly<{ resource?: number; after: Revision; upTo?: Revision; isFalling?: boolean }>;

type RowsParts = Readonly<{
  recent: RecentObjects;
  revisions: Pick<Revisions, 'format'>;
  /** Called for a row whose checksum is wrong, or which an index misplaces. */
  damaged: (error: Error) => void;
}>;

export class Rows {
  readonly database: Connection;
  readonly #parts: RowsParts;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #resources = new Map<number, Resource>();
  readonly #ids = new Map<string, readonly number[]>();
  readonly #transaction: <T>(read: () => T) => T;

  constructor(database: Connection, parts: RowsParts) {
    this.database = database;
    this.#parts = parts;
    this.#statements = prepare(database);
    // Created once, because its creation costs more than most reads.
    this.#transaction = database.transaction((read: () => unknown) => read()) as <T>(read: () => T) => T;
  }

  /** One read transaction: all of it reads the same state. */
  read<T>(read: () => T): T {
    return this.#transaction(read);
  }

  /**
   * The object put at `revision`; undefined if the row is compacted, or is a delete. With
   * `isOneOfMany`, the object stays in memory only if there is room.
   */
  object(revision: Revision, isOneOfMany = false): StoredObject | undefined {
    const { recent, revisions } = this.#parts;
    const known = recent.get(revision);
    if (known !== undefined) return known;
    const columns = revision > 0 ? this.#statements.body.get(revision) : undefined;
    if (columns === undefined) return undefined;
    const row = bodyRowOf(columns);
    const body = this.#received(() => verifyBody(row));
    if (body === undefined) return undefined;
    const object: StoredObject = { key: this.key(row), revision, resourceVersion: revisions.format(revision), body };
    if (isOneOfMany) recent.addIfFits(object);
    else recent.add(object);
    return object;
  }

  /**
   * The object of a key, at the revision that an index names; undefined if the row has been removed
   * since.
   */
  objectOf(key: Key, revision: Revision, isOneOfMany = false): StoredObject | undefined {
    const object = this.object(revision, isOneOfMany);
    if (object !== undefined && !isSameKey(object.key, key))
      this.#fail(`an index names revision ${revision} for ${formatClientKey(key)}, but that revision is of ${formatClientKey(object.key)}`);
    return object;
  }

  /**
   * As `objectOf`, but in the transaction that read the index, or at a covered revision, so that
   * the row cannot have been removed.
   */
  objectAt(key: Key, revision: Revision | undefined, isOneOfMany = false): StoredObject {
    const object = revision === undefined ? undefined : this.objectOf(key, revision, isOneOfMany);
    return object ?? this.#fail(`the row of ${formatClientKey(key)} is missing`);
  }

  /**
   * Verifies the checksum and the place of each row. A damaged index may name a row twice, in the
   * wrong order, or for another type.
   */
  verifyRows<Row extends ChecksummedRow>(
    rows: readonly Row[],
    { resource, after, upTo = Infinity, isFalling = false }: RowRange,
  ): readonly Row[] {
    return this.#received(() => {
      let [low, high] = [after, upTo];
      for (const row of rows) {
        if (verifyRow(row).resource !== (resource ?? row.resource))
          throw new Unsound(`revision ${row.revision} is in the index of another type`);
        if (row.revision <= low || row.revision > high) throw new Unsound(`revision ${row.revision} was read out of order`);
        if (isFalling) high = row.revision - 1;
        else low = row.revision;
      }
      return rows;
    });
  }

  /**
   * The revision of a key's object at `at`, in the life that began at `born`. `revision`: a later
   * revision of that life. Undefined if the life had not begun, or if the row is compacted. From a
   * milestone, a few steps along `replaced` lead to the row (0004-lives.sql). A damaged step leads
   * to a row of another key, or to none; the caller detects that.
   */
  revisionAt({ revision, born }: Version, at: Revision): Revision | undefined {
    let row = this.#statements.link.get(this.#statements.milestone.get(born, at) ?? revision);
    while (row !== undefined && row.revision > at) {
      if (row.replaced >= row.revision) this.#fail(`revision ${row.revision} replaces a later one`);
      row = row.replaced > 0 ? this.#statements.link.get(row.replaced) : undefined;
    }
    return row?.revision;
  }

  key({ resource, shard, cluster, namespace, name }: ChangeRow): Key {
    return { resource: this.resource(resource), shard, cluster, namespace, name } as Key;
  }

  resource(id: number): Resource {
    const known = this.#resources.get(id) ?? this.#statements.resource.get(id);
    assert(known !== undefined, 'a row names a resource that exists');
    this.#resources.set(id, known);
    return known;
  }

  /**
   * The ids of the types that a scope covers, rising. For the identity '*', at most `max` of them.
   */
  resourceIds({ group, resource, identity }: Pick<Scope, 'group' | 'resource' | 'identity'>, max = everyOne): readonly number[] {
    if (identity === '*') return this.#statements.resourceIds.all({ group, resource, identity, max });
    const text = formatResource({ group, resource, identity });
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    const ids = this.#statements.resourceIds.all({ group, resource, identity, max });
    // A type keeps its id, but a type without an id may get one later.
    if (ids.length > 0) this.#ids.set(text, ids);
    return ids;
  }

  #fail(problem: string): never {
    return this.#received(() => {
      throw new Unsound(problem);
    });
  }

  #received<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (isDamage(error)) this.#parts.damaged(error);
      throw error;
    }
  }
}

/** SQLite's LIMIT for all rows. */
const everyOne = -1;

function isSameKey(a: Key, b: Key): boolean {
  if (a.name !== b.name || a.cluster !== b.cluster || a.shard !== b.shard || a.namespace !== b.namespace) return false;
  return a.resource === b.resource || formatResource(a.resource) === formatResource(b.resource);
}

function prepare(database: Connection) {
  return {
    // As an array: reading sixteen columns by name costs more than the rest of the row.
    body: database.prepare<[Revision], BodyColumns>(/*sql*/ `SELECT ${bodyColumns} FROM changes WHERE revision = ?`).raw(),
    link: database.prepare<[Revision], { revision: Revision; replaced: Revision }>(
      /*sql*/ `SELECT revision, replaced FROM changes WHERE revision = ?`,
    ),
    milestone: database
      .prepare<[Revision, Revision], Revision>(
        /*sql*/ `SELECT revision FROM milestones INDEXED BY milestones_by_life WHERE born = ? AND revision > ? ORDER BY revision LIMIT 1`,
      )
      .pluck(),
    resource: database.prepare<[number], Resource>(/*sql*/ `SELECT api_group AS "group", resource, identity FROM resources WHERE id = ?`),
    resourceIds: database
      .prepare<[{ group: string; resource: string; identity: string; max: number }], number>(
        /*sql*/ `SELECT id FROM resources WHERE api_group = @group AND resource = @resource AND (@identity = '*' OR identity = @identity) ORDER BY id LIMIT @max`,
      )
      .pluck(),
  };
}
