/**
 * Removes unmarked objects in steps: at the `end` of a sync, and when a shard or a type is removed.
 * Other mutations commit between two steps.
 *
 * The `end` of a slice that was small before the commit takes one step, because later pushes of the
 * lane may be in that commit (lane.ts). However much that commit has added to the slice, the step
 * removes it all.
 *
 * Bounds: a step reads about `sweepRowsMax` keys and deletes at most `sweepDeletesMax` objects. The
 * next step continues behind the last key read.
 */
import { sweepDeletesMax } from '../batch-item.js';
import { failpoint } from '../../diagnostics/failpoint.js';
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';
import type { ChangeWriter } from './change-writer.js';
import type { Byproduct } from './committer-messages.js';
import type { Connection } from './database.js';
import type { NumberedSlice, Walk } from '../syncs.js';

/** Keys read in one step: about two milliseconds of the committer's time. */
const sweepRowsMax = 2_000;
/** Keys read at once. */
const pageRows = 250;

type Row = [
  cluster: Key['cluster'],
  namespace: string,
  name: string,
  revision: Revision,
  high: number,
  low: number,
  born: Revision,
  versions: number,
];

export class Sweep {
  readonly #writer: ChangeWriter;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Connection, writer: ChangeWriter) {
    this.#writer = writer;
    this.#statements = prepare(database);
  }

  /**
   * Takes the walk one step further. The walk is done when it has no slices left. One step is
   * enough if the slices have at most `atOnce` objects in all.
   */
  step(walk: Walk, atOnce = 0): readonly Byproduct[] {
    const [rowsMax, deletesMax] = [Math.max(sweepRowsMax, atOnce + pageRows), Math.max(sweepDeletesMax, atOnce + 1)];
    const removed: Byproduct[] = [];
    for (let examined = 0; examined < rowsMax && removed.length < deletesMax; examined += pageRows) {
      const [current] = walk.slices;
      if (current === undefined) break;
      this.#page(walk, current, { removed, deletesMax });
    }
    failpoint('sweep.step');
    return removed;
  }

  #page(walk: Walk, current: NumberedSlice, { removed, deletesMax }: Readonly<{ removed: Byproduct[]; deletesMax: number }>): void {
    const { page, pageOfCluster } = this.#statements;
    const rows = (walk.cluster === '' ? page : pageOfCluster).all(current.id, current.slice.shard, ...walk.after, pageRows);
    for (const row of rows) {
      if (removed.length === deletesMax) return;
      const [cluster, namespace, name, revision] = row;
      if (walk.marks.isUnmarked(revision) && walk.mayRemove({ cluster, namespace, name })) removed.push(this.#remove(current, row));
      walk.after = [cluster, namespace, name];
    }
    if (rows.length === pageRows) return;
    walk.slices.shift();
    walk.after = ['', '', ''];
  }

  #remove(
    { id, slice: { shard, resource } }: NumberedSlice,
    [cluster, namespace, name, replaced, high, low, born, versions]: Row,
  ): Byproduct {
    const key = { resource, shard, cluster, namespace, name };
    const held = { revision: replaced, bytes: this.#statements.bytes.get(replaced) ?? 0, digest: { high, low }, born, versions };
    const revision = this.#writer.delete(key, [id, shard, cluster, namespace, name], held);
    return { key, revision, replaced };
  }
}

function prepare(database: Connection) {
  type From = [number, string, cluster: string, namespace: string, name: string, rowsMax: number];
  const page = (behind: string) =>
    database
      .prepare<From, Row>(/*sql*/ `SELECT cluster, namespace, name, revision, digest_high, digest_low, born, versions FROM objects
               WHERE resource = ? AND shard = ? AND ${behind} ORDER BY cluster, namespace, name LIMIT ?`)
      .raw();
  return {
    page: page('(cluster, namespace, name) > (?, ?, ?)'),
    pageOfCluster: page('cluster = ? AND (namespace, name) > (?, ?)'),
    bytes: database.prepare<[Revision], number>(/*sql*/ `SELECT length(body) FROM changes WHERE revision = ?`).pluck(),
  };
}
