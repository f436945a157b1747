/**
 * A scope at a revision R, read page by page in key order. A page is one short read transaction; nothing pins the WAL
 * between pages (D6). Rows that changed since R are told back through the revisions they replaced:
 *
 *   objects row at r ≤ R   → as it is            objects row at r > R → follow `replaced` to ≤ R, or it was not there yet
 *   deleted since R        → not in `objects`: found in the log, told back likewise, and merged in at its place
 *
 * Bounds: a page looks at `rowsMax` rows and stops at `bytesMax` of bodies; `resurrectedMax` deleted keys are remembered,
 * beyond that the snapshot is given up (410). I9 Within a snapshot every key that stood at R comes exactly once.
 */
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Snapshot, SnapshotPage } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import { expired, Refused } from '../../domain/errors.js';
import { tombstone } from './committer.js';
import type { Connection } from './database.js';
import type { ChangeRow, Rows } from './rows.js';

export type SnapshotLimits = Readonly<{ rowsMax: number; bytesMax: number; resurrectedMax: number }>;

/** A key and the revision that held it at R. */
type Entry = Readonly<{ key: Key; revision: Revision }>;

export class SqliteSnapshot implements Snapshot {
  readonly revision: Revision;
  readonly #scope: Scope;
  readonly #rows: Rows;
  readonly #walks: Walks;
  readonly #limits: SnapshotLimits;
  /** Throws when history no longer covers the snapshot. */
  readonly #assertCovered: () => void;
  readonly #release: () => void;
  #deletesSeen: Revision;
  readonly #resurrected: Entry[] = [];

  constructor(scope: Scope, revision: Revision, parts: { rows: Rows; walks: Walks; assertCovered: () => void; release: () => void }, limits: SnapshotLimits) {
    this.revision = revision;
    this.#scope = scope;
    this.#rows = parts.rows;
    this.#walks = parts.walks;
    this.#assertCovered = parts.assertCovered;
    this.#release = parts.release;
    this.#limits = limits;
    this.#deletesSeen = revision;
  }

  async page(after: Key | undefined): Promise<SnapshotPage> {
    this.#assertCovered();
    return this.#rows.database.transaction(() => this.#read(after))();
  }

  close(): void {
    this.#release();
  }

  #read(after: Key | undefined): SnapshotPage {
    this.#resurrect();
    const { entries, last } = this.#candidates(after);
    const objects: StoredObject[] = [];
    let bytes = 0;
    for (const { key, revision } of entries) {
      const object = this.#rows.object(revision);
      if (object === undefined) throw new Refused(expired('the snapshot was compacted away, please start over'));
      objects.push(object);
      bytes += object.body.bytes.length;
      if (bytes >= this.#limits.bytesMax && (last !== undefined || key !== entries.at(-1)?.key)) return { objects, next: key };
    }
    return { objects, next: last };
  }

  /** What stood at R behind `after`, in order; `last` is the last row looked at, undefined at the end. */
  #candidates(after: Key | undefined): { entries: readonly Entry[]; last: Key | undefined } {
    const { entries, last } = this.#walks.page(this.#scope, after, this.#limits.rowsMax);
    const live = entries.flatMap(({ key, revision }) => {
      if (!matches(this.#scope, key)) return [];
      const held = revision <= this.revision ? revision : this.#rows.heldAt(revision, this.revision);
      return held === undefined ? [] : [{ key, revision: held }];
    });
    if (this.#resurrected.length === 0) return { entries: live, last };
    const order = this.#walks.order(this.#scope);
    const between = this.#resurrected.filter(
      ({ key }) => (after === undefined || order(key, after) > 0) && (last === undefined || order(key, last) <= 0),
    );
    return { entries: [...live, ...between].toSorted((a, b) => order(a.key, b.key)), last };
  }

  /** Takes note of the keys deleted since this was last asked. */
  #resurrect(): void {
    for (const row of this.#walks.deletedSince(this.#deletesSeen)) {
      this.#deletesSeen = row.revision;
      const key = this.#rows.key(row);
      if (!matches(this.#scope, key)) continue;
      const revision = this.#rows.heldAt(row.revision, this.revision);
      if (revision !== undefined) this.#resurrected.push({ key, revision });
    }
    if (this.#resurrected.length > this.#limits.resurrectedMax) {
      throw new Refused(expired(`more than ${this.#limits.resurrectedMax} objects were deleted since, please start over`));
    }
  }
}

/**
 * The two orders in which keys are walked: by (shard, cluster, namespace, name); and, for one logical cluster on whichever
 * shards have it, by (namespace, name, shard) through its index.
 */
export class Walks {
  readonly #rows: Rows;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(rows: Rows) {
    this.#rows = rows;
    this.#statements = prepare(rows.database);
  }

  page(scope: Scope, after: Key | undefined, rowsMax: number): { entries: readonly Entry[]; last: Key | undefined } {
    const ids = this.#rows.resourceIds(scope);
    const first = after === undefined ? 0 : Math.max(0, ids.findIndex((id) => this.#rows.resource(id).identity === after.resource.identity));
    for (const [i, id] of ids.entries()) {
      if (i < first) continue;
      const behind = after !== undefined && i === first ? after : undefined;
      const rows = this.#read(scope, id, behind, rowsMax);
      if (rows.length === 0) continue;
      const entries = rows.map((row) => ({ key: this.#rows.key({ ...row, resource: id }), revision: row.revision }));
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
  deletedSince(revision: Revision): readonly ChangeRow[] {
    return this.#statements.deletedSince.all(revision);
  }

  #read(scope: Scope, resource: number, after: Key | undefined, rowsMax: number): readonly ChangeRow[] {
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
  type Bound = { resource: number; rowsMax: number; shard: string; cluster: string; namespace: string; name: string };
  return {
    everything: database.prepare<[Bound], ChangeRow>(
      /*sql*/ `SELECT shard, cluster, namespace, name, revision FROM objects
               WHERE resource = @resource AND (shard, cluster, namespace, name) > (@shard, @cluster, @namespace, @name)
               ORDER BY shard, cluster, namespace, name LIMIT @rowsMax`,
    ),
    shard: database.prepare<[Bound & { inShard: string }], ChangeRow>(
      /*sql*/ `SELECT shard, cluster, namespace, name, revision FROM objects
               WHERE resource = @resource AND shard = @inShard AND (cluster, namespace, name) > (@cluster, @namespace, @name)
               ORDER BY cluster, namespace, name LIMIT @rowsMax`,
    ),
    shardCluster: database.prepare<[Bound & { inShard: string; inCluster: string }], ChangeRow>(
      /*sql*/ `SELECT shard, cluster, namespace, name, revision FROM objects
               WHERE resource = @resource AND shard = @inShard AND cluster = @inCluster AND (namespace, name) > (@namespace, @name)
               ORDER BY namespace, name LIMIT @rowsMax`,
    ),
    cluster: database.prepare<[Bound & { inCluster: string }], ChangeRow>(
      /*sql*/ `SELECT shard, cluster, namespace, name, revision FROM objects INDEXED BY objects_by_cluster
               WHERE cluster = @inCluster AND resource = @resource AND (namespace, name, shard) > (@namespace, @name, @shard)
               ORDER BY namespace, name, shard LIMIT @rowsMax`,
    ),
    deletedSince: database.prepare<[Revision], ChangeRow>(
      /*sql*/ `SELECT revision, resource, kind, replaced, shard, cluster, namespace, name FROM changes INDEXED BY changes_tombstones
               WHERE kind = ${tombstone} AND revision > ? ORDER BY revision`,
    ),
  };
}
