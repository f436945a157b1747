/**
 * Takes out of the change log what no reader above the compacted revision C can need, in small steps in the committer's
 * thread. A row goes when what superseded it is at or below C, never by its own age:
 *
 *   revision   10 put a ── 25 put a ── 31 delete a        C = 25: row 10 goes, row 25 stays (superseded by 31).
 *                 └ replaced by 25  └ replaced by 31      C = 31: row 25 goes, row 31 stays as a tombstone of `a`.
 *
 * I5 A live object's row never goes. I6 C never falls; a step that was cut short is taken again without harm.
 */
import type { Revision } from '../../domain/revision.js';
import { readMeta } from './meta.js';
import { tombstone } from './row-kind.js';
import type { Connection } from './database.js';

/** `bytes` of bodies have left the log. */
export type CompactionStep = Readonly<{ compacted: Revision; bytes: number; done: boolean }>;

export class Compaction {
  readonly #database: Connection;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Connection) {
    this.#database = database;
    this.#statements = prepare(database);
  }

  /**
   * Raises C towards `upTo` over at most `rowsMax` changes, and drops as many tombstones that are at or below C and either
   * at or below `tombstonesUpTo` or beyond the `tombstonesMax` newest.
   */
  step({
    upTo,
    tombstonesUpTo,
    tombstonesMax,
    rowsMax,
  }: {
    upTo: Revision;
    tombstonesUpTo: Revision;
    tombstonesMax: number;
    rowsMax: number;
  }): CompactionStep {
    return this.#database
      .transaction((): CompactionStep => {
        const from = readMeta(this.#database, 'compacted');
        const to = Math.max(from, Math.min(upTo, from + rowsMax));
        let bytes = 0;
        for (const row of this.#statements.passed.all(from, to)) {
          bytes += row.bytes ?? 0;
          if (row.replaced > 0) this.#statements.remove.run(row.replaced);
        }
        this.#statements.forgetMoves.run(to);
        const floor = Math.min(to, Math.max(tombstonesUpTo, this.#statements.beyondNewest.get(tombstonesMax) ?? 0));
        const dropped = this.#statements.dropTombstones.run(floor, rowsMax).changes;
        const tombstonesFrom = Math.max(readMeta(this.#database, 'tombstones_from'), floor);
        this.#statements.setMeta.run(to, 'compacted');
        this.#statements.setMeta.run(tombstonesFrom, 'tombstones_from');
        this.#statements.takeBytes.run(bytes);
        this.#statements.forgetMoments.run(tombstonesFrom);
        return { compacted: to, bytes, done: to >= upTo && dropped < rowsMax };
      })
      .immediate();
  }
}

function prepare(database: Connection) {
  return {
    passed: database.prepare<[Revision, Revision], { replaced: Revision; bytes: number | null }>(
      /*sql*/ `SELECT replaced, length(body) AS bytes FROM changes WHERE revision > ? AND revision <= ? ORDER BY revision`,
    ),
    remove: database.prepare(/*sql*/ `DELETE FROM changes WHERE revision = ?`),
    // Nobody reads changes at or below C any more.
    forgetMoves: database.prepare(/*sql*/ `DELETE FROM path_moves WHERE revision <= ?`),
    dropTombstones: database.prepare(
      /*sql*/ `DELETE FROM changes WHERE revision IN (SELECT revision FROM changes INDEXED BY changes_tombstones WHERE kind = ${tombstone} AND revision <= ? ORDER BY revision LIMIT ?)`,
    ),
    beyondNewest: database
      .prepare<[number], Revision>(
        /*sql*/ `SELECT revision FROM changes INDEXED BY changes_tombstones WHERE kind = ${tombstone} ORDER BY revision DESC LIMIT 1 OFFSET ?`,
      )
      .pluck(),
    setMeta: database.prepare(/*sql*/ `UPDATE meta SET value = ? WHERE name = ?`),
    takeBytes: database.prepare(/*sql*/ `UPDATE meta SET value = value - ? WHERE name = 'log_bytes'`),
    forgetMoments: database.prepare(/*sql*/ `DELETE FROM moments WHERE revision < (SELECT max(revision) FROM moments WHERE revision <= ?)`),
  };
}
