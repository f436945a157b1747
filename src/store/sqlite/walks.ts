/**
 * The two orders in which keys are walked: by (shard, cluster, namespace, name); and, for one logical cluster on whichever
 * shards have it, by (namespace, name, shard) through its index.
 */
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';
import type { Scope } from '../../domain/scope.js';
import { tombstone } from './row-kind.js';
import type { Connection } from './database.js';
import type { ChangeRow, Rows } from './rows.js';

/** A key and the revision that holds it. */
export type Entry = Readonly<{ key: Key; revision: Revision }>;

type KeyRow = [shard: Key['shard'], cluster: Key['cluster'], namespace: string, name: string, revision: Revision];

export class Walks {
  readonly #rows: Rows;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(rows: Rows) {
    this.#rows = rows;
    this.#statements = prepare(rows.database);
  }

  page(scope: Scope, after: Key | undefined, rowsMax: number): { entries: readonly Entry[]; last: Key | undefined } {
    const ids = this.#rows.resourceIds(scope);
    const first =
      after === undefined
        ? 0
        : Math.max(
            0,
            ids.findIndex((id) => this.#rows.resource(id).identity === after.resource.identity),
          );
    for (const [i, id] of ids.entries()) {
      if (i < first) continue;
      const behind = after !== undefined && i === first ? after : undefined;
      const rows = this.#read(scope, id, behind, rowsMax);
      if (rows.length === 0) continue;
      const resource = this.#rows.resource(id);
      const entries = rows.map(([shard, cluster, namespace, name, revision]): Entry => ({
        key: { resource, shard, cluster, namespace, name },
        revision,
      }));
      const isEnd = rows.length < rowsMax && i === ids.length - 1;
      return { entries, last: isEnd ? undefined : entries.at(-1)?.key };
    }
    return { entries: [], last: undefined };
  }

  order(scope: Scope): (a: Key, b: Key) => number {
    const parts = byCluster(scope) ? (['namespace', 'name', 'shard'] as const) : (['shard', 'cluster', 'namespace', 'name'] as const);
    const identities = this.#rows.resourceIds(scope).map((id) => this.#rows.resource(id).identity);
    return (a, b) => {
      const byResource = identities.indexOf(a.resource.identity) - identities.indexOf(b.resource.identity);
      if (byResource !== 0) return byResource;
      for (const part of parts) {
        const order = a[part] === b[part] ? 0 : Buffer.compare(Buffer.from(a[part]), Buffer.from(b[part]));
        if (order !== 0) return order;
      }
      return 0;
    };
  }

  /** Deletes above `revision`, rising, published or not: what is missing from `objects` must be found here. */
  deletedSince(revision: Revision, rowsMax: number): readonly ChangeRow[] {
    return this.#statements.deletedSince.all(revision, rowsMax);
  }

  #read(scope: Scope, resource: number, after: Key | undefined, rowsMax: number): readonly KeyRow[] {
    const { shard, cluster, namespace, name } = after ?? { shard: '', cluster: '', namespace: '', name: '' };
    const all = { resource, rowsMax, shard, cluster, namespace, name };
    if (byCluster(scope)) return this.#statements.cluster.all({ ...all, inCluster: scope.cluster });
    if (scope.shard === '*') return this.#statements.everything.all(all);
    if (scope.cluster === '*') return this.#statements.shard.all({ ...all, inShard: scope.shard });
    return this.#statements.shardCluster.all({ ...all, inShard: scope.shard, inCluster: scope.cluster });
  }
}

function byCluster({ shard, cluster }: Scope): boolean {
  return shard === '*' && cluster !== '*';
}

function prepare(database: Connection) {
  // Rows as arrays: five columns of many rows come noticeably faster without five names each.
  const keys = <Parameters extends Bound>(sql: string) => database.prepare<[Parameters], KeyRow>(sql).raw();
  type Bound = { resource: number; rowsMax: number; shard: string; cluster: string; namespace: string; name: string };
  return {
    everything: keys<Bound>(/*sql*/ `SELECT shard, cluster, namespace, name, revision FROM objects
               WHERE resource = @resource AND (shard, cluster, namespace, name) > (@shard, @cluster, @namespace, @name)
               ORDER BY shard, cluster, namespace, name LIMIT @rowsMax`),
    shard: keys<Bound & { inShard: string }>(/*sql*/ `SELECT shard, cluster, namespace, name, revision FROM objects
               WHERE resource = @resource AND shard = @inShard AND (cluster, namespace, name) > (@cluster, @namespace, @name)
               ORDER BY cluster, namespace, name LIMIT @rowsMax`),
    shardCluster: keys<
      Bound & { inShard: string; inCluster: string }
    >(/*sql*/ `SELECT shard, cluster, namespace, name, revision FROM objects
               WHERE resource = @resource AND shard = @inShard AND cluster = @inCluster AND (namespace, name) > (@namespace, @name)
               ORDER BY namespace, name LIMIT @rowsMax`),
    cluster: keys<
      Bound & { inCluster: string }
    >(/*sql*/ `SELECT shard, cluster, namespace, name, revision FROM objects INDEXED BY objects_by_cluster
               WHERE cluster = @inCluster AND resource = @resource AND (namespace, name, shard) > (@namespace, @name, @shard)
               ORDER BY namespace, name, shard LIMIT @rowsMax`),
    deletedSince: database.prepare<
      [Revision, number],
      ChangeRow
    >(/*sql*/ `SELECT revision, resource, kind, replaced, shard, cluster, namespace, name FROM changes INDEXED BY changes_tombstones
               WHERE kind = ${tombstone} AND revision > ? ORDER BY revision LIMIT ?`),
  };
}
