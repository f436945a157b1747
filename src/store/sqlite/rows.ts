/** Reads rows of the change log and makes objects of them. Shared by whoever reads: objects, snapshots, change log. */
import assert from 'node:assert/strict';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { Scope } from '../../domain/scope.js';
import type { Connection } from './database.js';
import type { RecentObjects } from './recent-objects.js';

/** A version of a life of a key, which the revision it was born with names. */
export type Version = Readonly<{ revision: Revision; born: Revision }>;

/** A row without its body. */
export type ChangeRow = Readonly<{
  revision: Revision;
  resource: number;
  kind: number;
  replaced: Revision;
  shard: string;
  cluster: string;
  namespace: string;
  name: string;
}>;

type BodyRow = ChangeRow & {
  version: string;
  metadata_start: number;
  metadata_end: number;
  annotations_at: number;
  revision_at: number;
  body: Uint8Array | null;
};

export class Rows {
  readonly database: Connection;
  readonly #recent: RecentObjects;
  readonly #format: (revision: Revision) => string;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #resources = new Map<number, Resource>();
  readonly #ids = new Map<string, readonly number[]>();

  constructor(database: Connection, recent: RecentObjects, format: (revision: Revision) => string) {
    this.database = database;
    this.#recent = recent;
    this.#format = format;
    this.#statements = prepare(database);
  }

  /** The object put at `revision`; undefined when the row is compacted, or is a delete. */
  object(revision: Revision): StoredObject | undefined {
    const known = this.#recent.get(revision);
    if (known !== undefined) return known;
    const row = revision > 0 ? this.#statements.body.get(revision) : undefined;
    if (row === undefined || row.body === null) return undefined;
    const object: StoredObject = {
      key: this.key(row),
      revision,
      resourceVersion: this.#format(revision),
      body: {
        bytes: row.body,
        version: row.version,
        marks: {
          metadataStart: row.metadata_start,
          metadataEnd: row.metadata_end,
          annotationsAt: row.annotations_at,
          revisionAt: row.revision_at,
        },
      },
    };
    this.#recent.add(object);
    return object;
  }

  /**
   * What that life held at `at`, from a later version of it on; undefined when it had not begun, or is compacted. Milestones stand close
   * enough for a few steps along `replaced` (0004-lives.sql).
   */
  heldAt({ revision, born }: Version, at: Revision): Revision | undefined {
    let row = this.#statements.link.get(this.#statements.milestone.get(born, at) ?? revision);
    while (row !== undefined && row.revision > at) {
      assert(row.replaced < row.revision, 'a change replaces an earlier one');
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

  /** The ids of the resources a scope covers, rising; an identity '*' may cover several. */
  resourceIds({ group, resource, identity }: Pick<Scope, 'group' | 'resource' | 'identity'>): readonly number[] {
    if (identity === '*') return this.#statements.resourceIds.all({ group, resource, identity });
    const text = formatResource({ group, resource, identity });
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    const ids = this.#statements.resourceIds.all({ group, resource, identity });
    // A resource that is there once stays; one that is not may come.
    if (ids.length > 0) this.#ids.set(text, ids);
    return ids;
  }
}

function prepare(database: Connection) {
  return {
    body: database.prepare<
      [Revision],
      BodyRow
    >(/*sql*/ `SELECT revision, resource, kind, replaced, shard, cluster, namespace, name, version, metadata_start, metadata_end, annotations_at, revision_at, body
               FROM changes WHERE revision = ?`),
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
      .prepare<[{ group: string; resource: string; identity: string }], number>(
        /*sql*/ `SELECT id FROM resources WHERE api_group = @group AND resource = @resource AND (@identity = '*' OR identity = @identity) ORDER BY id`,
      )
      .pluck(),
  };
}
