/**
 * Walks over existing or deleted keys, in one of two orders. One is (shard, cluster, namespace,
 * name). The other is for one logical cluster on all shards: (namespace, name, shard), through an
 * index.
 */
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';
import type { Scope } from '../../domain/scope.js';
import { compareUtf8 } from '../../domain/syntax/version-order.js';
import { tombstone } from './change-row.js';
import type { Connection } from './database.js';
import type { Rows } from './rows.js';

/** A key, and the first (`born`) and newest revision of one of its lives, from create to delete. */
export type Entry = Readonly<{ key: Key; revision: Revision; born: Revision }>;

/** Keys of one type that follow `after`. */
export type KeyRange = Readonly<{ scope: Scope; resource: number; after: Key | undefined; rowsMax: number }>;

type KeyRow = [shard: Key['shard'], cluster: Key['cluster'], namespace: string, name: string, revision: Revision, born: Revision];

/**
 * Identities read at once. A type may have thousands, and most pages begin and end within one
 * identity.
 */
const resourcesAtOnce = 16;

/** Greater than every possible name. */
const end = '\u{10FFFF}';

/** A bucket of deletes contains 2^13 revisions (0004-lives.sql). */
const bucketBits = 13;

export class Walks {
  readonly #rows: Rows;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(rows: Rows) {
    this.#rows = rows;
    this.#statements = prepare(rows.database);
  }

  /**
   * The key ranges of a scope that have or had objects, from `after` on: one for each identity, in
   * order.
   */
  *stretches(scope: Scope, after: Key | undefined, rowsMax: number): Generator<KeyRange> {
    if (scope.identity !== '*') {
      for (const resource of this.#rows.resourceIds(scope)) yield { scope, resource, after, rowsMax };
      return;
    }
    const { group, resource: name } = scope;
    let from = after?.resource.identity ?? '';
    for (let found = resourcesAtOnce; found === resourcesAtOnce;) {
      const resources = this.#statements.resources.all({ group, resource: name, from, max: resourcesAtOnce });
      found = resources.length;
      for (const { id, identity } of resources) {
        yield { scope, resource: id, after: identity === after?.resource.identity ? after : undefined, rowsMax };
        // The smallest text above `identity`.
        from = `${identity}\0`;
      }
    }
  }

  existing(keyRange: KeyRange): readonly Entry[] {
    return this.#entries(keyRange, this.#statements[shapeOf(keyRange.scope)].standing.all(bound(keyRange)));
  }

  /**
   * `looked`: how many keys the range has. `counted`: how many of them have the namespace and the
   * name of the scope.
   */
  count(keyRange: KeyRange): Readonly<{ looked: number; counted: number }> {
    const { namespace, name } = keyRange.scope;
    const range = { ...bound(keyRange), inNamespace: namespace ?? null, inName: name ?? null };
    return this.#statements[shapeOf(keyRange.scope)].count.get(range) ?? { looked: 0, counted: 0 };
  }

  /**
   * Lives that existed at `at` and ended later, by a delete in this bucket. `upTo`: the last key;
   * undefined for all.
   */
  deletedSince(keyRange: KeyRange, { bucket, at, upTo }: { bucket: number; at: Revision; upTo: Key | undefined }): readonly Entry[] {
    const { shard, cluster, namespace, name } = upTo ?? { shard: end, cluster: end, namespace: end, name: end };
    const range = { ...bound(keyRange), bucket, at, upToShard: shard, upToCluster: cluster, upToNamespace: namespace, upToName: name };
    return this.#entries(keyRange, this.#statements[shapeOf(keyRange.scope)].ended.all(range));
  }

  /** The buckets with the ends of lives that existed at `at`, published or not. */
  bucketsSince(at: Revision): readonly number[] {
    const newest = this.#statements.newestDelete.get(at);
    return newest === undefined ? [] : this.#statements.buckets.all({ at, first: at >> bucketBits, last: newest >> bucketBits });
  }

  order(scope: Scope): (a: Key, b: Key) => number {
    const parts =
      shapeOf(scope) === 'cluster' ? (['namespace', 'name', 'shard'] as const) : (['shard', 'cluster', 'namespace', 'name'] as const);
    return (a, b) => {
      for (const part of parts) {
        const order = compareUtf8(a[part], b[part]);
        if (order !== 0) return order;
      }
      return 0;
    };
  }

  #entries({ resource: id }: KeyRange, rows: readonly KeyRow[]): readonly Entry[] {
    const resource = this.#rows.resource(id);
    return rows.map(([shard, cluster, namespace, name, revision, born]) => ({
      key: { resource, shard, cluster, namespace, name },
      revision,
      born,
    }));
  }
}

type Shape = 'everything' | 'shard' | 'shardCluster' | 'cluster';

function shapeOf({ shard, cluster }: Scope): Shape {
  if (shard === '*') return cluster === '*' ? 'everything' : 'cluster';
  return cluster === '*' ? 'shard' : 'shardCluster';
}

function bound({ scope, resource, after, rowsMax }: KeyRange) {
  const { shard, cluster, namespace, name } = after ?? { shard: '', cluster: '', namespace: '', name: '' };
  return { resource, rowsMax, shard, cluster, namespace, name, inShard: scope.shard, inCluster: scope.cluster };
}

function prepare(database: Connection) {
  // Rows as arrays: reading many rows is noticeably faster without column names.
  const walk = ({ within, order, byCluster }: { within: string; order: string; byCluster?: true }) => {
    const columns = order.split(', ');
    const behind = `(${order}) > (${columns.map((column) => `@${column}`).join(', ')})`;
    const upTo = `(${order}) <= (${columns.map((column) => `@upTo${column.charAt(0).toUpperCase()}${column.slice(1)}`).join(', ')})`;
    const objects = byCluster ? 'objects INDEXED BY objects_by_cluster' : 'objects';
    const deletes = `changes INDEXED BY ${byCluster ? 'changes_ended_by_cluster' : 'changes_ended'}`;
    return {
      standing: database
        .prepare<[object], KeyRow>(/*sql*/ `SELECT shard, cluster, namespace, name, revision, born FROM ${objects}
               WHERE ${within} AND ${behind} ORDER BY ${order} LIMIT @rowsMax`)
        .raw(),
      count: database.prepare<
        [object],
        { looked: number; counted: number }
      >(/*sql*/ `SELECT count(*) AS looked, coalesce(sum((@inNamespace IS NULL OR namespace = @inNamespace) AND (@inName IS NULL OR name = @inName)), 0) AS counted
               FROM (SELECT namespace, name FROM ${objects} WHERE ${within} AND ${behind} ORDER BY ${order} LIMIT @rowsMax)`),
      ended: database
        .prepare<[object], KeyRow>(/*sql*/ `SELECT shard, cluster, namespace, name, revision, born FROM ${deletes}
               WHERE born > 0 AND revision >> ${bucketBits} = @bucket AND ${within} AND ${behind} AND ${upTo}
                 AND revision > @at AND born <= @at ORDER BY ${order} LIMIT @rowsMax`)
        .raw(),
    };
  };
  return {
    resources: database.prepare<
      [object],
      { id: number; identity: string }
    >(/*sql*/ `SELECT id, identity FROM resources AS r WHERE api_group = @group AND resource = @resource AND identity >= @from
               AND EXISTS (SELECT 1 FROM changes INDEXED BY changes_by_resource WHERE resource = r.id) ORDER BY identity LIMIT @max`),
    everything: walk({ within: 'resource = @resource', order: 'shard, cluster, namespace, name' }),
    shard: walk({ within: 'resource = @resource AND shard = @inShard', order: 'cluster, namespace, name' }),
    shardCluster: walk({ within: 'resource = @resource AND shard = @inShard AND cluster = @inCluster', order: 'namespace, name' }),
    cluster: walk({ within: 'cluster = @inCluster AND resource = @resource', order: 'namespace, name, shard', byCluster: true }),
    buckets: database
      .prepare<
        [object],
        number
      >(/*sql*/ `WITH RECURSIVE buckets (bucket) AS (SELECT @first UNION ALL SELECT bucket + 1 FROM buckets WHERE bucket < @last)
               SELECT bucket FROM buckets WHERE EXISTS (
                 SELECT 1 FROM changes INDEXED BY changes_ended_lives
                 WHERE born > 0 AND revision >> ${bucketBits} = bucket AND born <= @at AND revision > @at)`)
      .pluck(),
    newestDelete: database
      .prepare<[Revision], Revision>(
        /*sql*/ `SELECT revision FROM changes INDEXED BY changes_tombstones WHERE kind = ${tombstone} AND revision > ? ORDER BY revision DESC LIMIT 1`,
      )
      .pluck(),
  };
}
