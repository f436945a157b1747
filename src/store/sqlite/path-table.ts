/**
 * The canonical path of each logical cluster on each shard. Part of the committer's transaction.
 *
 * If the path entry of a logical cluster names a path, that path counts (PATH-2). Otherwise the
 * path of the newest object that names one counts. The table records both. A path is removed with
 * the last object of the logical cluster on the shard.
 */
import type { CanonicalPath } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import { isClusterEntry } from '../../domain/path-entry.js';
import type { Revision } from '../../domain/revision.js';
import type { PathMove } from './committer-messages.js';
import type { Connection } from './database.js';

/** '' for none. */
type Text = CanonicalPath | '';
type Row = [path: Text, owned: number, named: Text];

export class PathTable {
  readonly #statements: ReturnType<typeof prepare>;
  #moves: PathMove[] = [];

  constructor(database: Connection) {
    this.#statements = prepare(database);
  }

  /** Moves of canonical paths since `open`. */
  get moves(): readonly PathMove[] {
    return this.#moves;
  }

  /** Begins a commit. */
  open(): void {
    this.#moves = [];
  }

  /** The key now has an object that names this path, or no path. */
  put(key: Key, path: CanonicalPath | undefined, revision: Revision): void {
    const isEntry = isClusterEntry(key.resource);
    if (path === undefined && !isEntry) return;
    const { shard, cluster } = key;
    const [before, wasOwned, wasNamed]: Row = this.#statements.path.get(shard, cluster) ?? ['', 0, ''];
    const named = isEntry ? wasNamed : (path ?? '');
    const owned = isEntry ? Number(path !== undefined) : wasOwned;
    const after = isEntry ? (path ?? named) : wasOwned === 1 ? before : named;
    if (after === before && owned === wasOwned && named === wasNamed) return;
    if (after === '') this.#statements.remove.run(shard, cluster);
    else this.#statements.set.run(shard, cluster, after, owned, named);
    if (after !== before) this.#recordMove(key, { revision, before, after });
  }

  delete(key: Key, revision: Revision): void {
    const { shard, cluster } = key;
    const [before] = this.#statements.path.get(shard, cluster) ?? [];
    if (before === undefined) return;
    if (this.#statements.anyOfCluster.get({ shard, cluster }) !== undefined) return this.put(key, undefined, revision);
    this.#statements.remove.run(shard, cluster);
    this.#recordMove(key, { revision, before, after: '' });
  }

  #recordMove({ shard, cluster }: Key, { revision, before, after }: Readonly<{ revision: Revision; before: Text; after: Text }>): void {
    this.#moves.push({ revision, before: before || undefined, after: after || undefined });
    this.#statements.addMove.run(revision, shard, cluster, before, after);
  }
}

function prepare(database: Connection) {
  return {
    path: database.prepare<[string, string], Row>(/*sql*/ `SELECT path, owned, named FROM paths WHERE shard = ? AND cluster = ?`).raw(),
    set: database.prepare(/*sql*/ `INSERT INTO paths (shard, cluster, path, owned, named) VALUES (?, ?, ?, ?, ?)
               ON CONFLICT (shard, cluster) DO UPDATE SET path = excluded.path, owned = excluded.owned, named = excluded.named`),
    remove: database.prepare(/*sql*/ `DELETE FROM paths WHERE shard = ? AND cluster = ?`),
    // One seek for each type of the logical cluster on any shard. Without `types`, SQLite would
    // read all objects that the logical cluster has on other shards.
    anyOfCluster: database
      .prepare<[Pick<Key, 'shard' | 'cluster'>], number>(/*sql*/ `WITH RECURSIVE types (resource) AS (
                 SELECT min(resource) FROM objects INDEXED BY objects_by_cluster WHERE cluster = @cluster
                 UNION ALL
                 SELECT (SELECT min(o.resource) FROM objects AS o INDEXED BY objects_by_cluster WHERE o.cluster = @cluster AND o.resource > types.resource)
                 FROM types WHERE types.resource IS NOT NULL
               )
               SELECT 1 FROM types WHERE EXISTS (SELECT 1 FROM objects AS o WHERE o.resource = types.resource AND o.shard = @shard AND o.cluster = @cluster) LIMIT 1`)
      .pluck(),
    addMove: database.prepare(/*sql*/ `INSERT INTO path_moves (revision, shard, cluster, before, after) VALUES (?, ?, ?, ?, ?)`),
  };
}
