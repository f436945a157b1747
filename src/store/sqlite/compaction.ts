/**
 * Removes the rows of the change log that no reader above the compacted revision C can need, in
 * small steps in the committer's thread. A row is removed when the change that superseded it is at
 * or below C; the row's own age does not count.
 *
 *   revision   10 put a ── 25 put a ── 31 delete a
 *                 └ replaced by 25  └ replaced by 31
 *   C = 25: removes row 10; row 25 stays, because 31 superseded it
 *   C = 31: removes row 25; row 31 stays as a tombstone of `a`
 *
 * I5 The row of a live object is never removed.
 * I6 C never falls. Repeating a step that was cut short does no harm.
 *
 * When nothing is left to remove, steps give free pages back, but leave an eighth of the file for
 * the next writes.
 *
 * Bounds: a step works for `budgetMs` and one page of rows, not counting the end of its
 * transaction. The cost of a step does not depend on the number of tombstones: they are counted
 * once, and the oldest are removed first.
 */
import { performance } from 'node:perf_hooks';
import { failpoint } from '../../diagnostics/failpoint.js';
import type { Revision } from '../../domain/revision.js';
import { readMeta } from './life.js';
import { verifyRow, summedColumns, tombstone, type ChecksummedRow } from './change-row.js';
import { readPragma, type Connection } from './database.js';

/**
 * C may rise to `upTo`. A tombstone at or below C is removed if it is at or below `tombstonesUpTo`,
 * or not among the `tombstonesMax` newest.
 */
export type CompactionOrder = Readonly<{ upTo: Revision; tombstonesUpTo: Revision; tombstonesMax: number; budgetMs: number }>;

/** `bytes`: the size of the removed bodies. The log keeps all deletes above `tombstonesFrom`. */
export type CompactionStep = Readonly<{ compacted: Revision; tombstonesFrom: Revision; bytes: number; done: boolean }>;

/** A step checks its time after this many rows, or after `pageBytes` of bodies. */
const pageRows = 32;
const pageBytes = 512 * 1024;

/** The part of the file that may be free, and the number of pages that may always be free. */
const freePart = 1 / 8;
const freePagesMin = 1024;
/** A step checks its time after giving back this many pages. */
const vacuumPages = 32;

type Passed = ChecksummedRow & Readonly<{ bytes: number | null }>;

export class Compaction {
  readonly #database: Connection;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #nowMs: () => number;
  /** The number of tombstones at or below C. */
  #tombstones: number;

  constructor(database: Connection, nowMs = () => performance.now()) {
    this.#database = database;
    this.#statements = prepare(database);
    this.#nowMs = nowMs;
    this.#tombstones = this.#statements.countTombstones.get(readMeta(database, 'compacted')) ?? 0;
  }

  step(order: CompactionOrder): CompactionStep {
    const before = this.#tombstones;
    try {
      const step = this.#database.transaction(() => this.#step(order)).immediate();
      failpoint('compaction.after');
      return step;
    } catch (error) {
      this.#tombstones = before;
      throw error;
    }
  }

  #step({ upTo, tombstonesUpTo, tombstonesMax, budgetMs }: CompactionOrder): CompactionStep {
    const untilMs = this.#nowMs() + budgetMs;
    const from = readMeta(this.#database, 'compacted');
    let compacted = from;
    let tombstonesFrom = readMeta(this.#database, 'tombstones_from');
    let bytes = 0;
    let done = false;
    do {
      const passed = this.#removeSuperseded(compacted, upTo);
      compacted = passed.at(-1)?.revision ?? Math.max(compacted, upTo);
      for (const row of passed) bytes += row.bytes ?? 0;
      // Removes up to twice as many tombstones as a page of rows can add, so that their number
      // falls.
      const forgotten = this.#dropTombstones(Math.min(compacted, tombstonesUpTo), { compacted, tombstonesMax, rowsMax: 2 * pageRows });
      tombstonesFrom = Math.max(tombstonesFrom, forgotten.upTo);
      done = compacted >= upTo && forgotten.done && this.#freePages();
    } while (!done && this.#nowMs() < untilMs);
    failpoint('compaction.before');
    this.#record({ compacted, tombstonesFrom, bytes });
    return { compacted, tombstonesFrom, bytes, done };
  }

  /** Removes the rows that one page of changes superseded. */
  #removeSuperseded(from: Revision, upTo: Revision): readonly Passed[] {
    const passed: Passed[] = [];
    let bytes = 0;
    for (const row of this.#statements.passed.all(from, upTo, pageRows)) {
      // Verified first, because the next line deletes the row that `replaced` names, and damage
      // could make it name the wrong row.
      verifyRow(row);
      if (row.replaced > 0) this.#statements.remove.run(row.replaced);
      if (row.kind === tombstone) this.#makeTombstone(row.revision);
      passed.push(row);
      bytes += row.bytes ?? 0;
      if (bytes > pageBytes) break;
    }
    return passed;
  }

  /**
   * A delete has become a tombstone. The object's life is forgotten, because no reader reads an
   * earlier revision.
   */
  #makeTombstone(revision: Revision): void {
    this.#statements.forgetLife.run(revision);
    this.#tombstones += 1;
  }

  /**
   * Removes the oldest tombstones: up to revision `aged`, and as many as exceed `tombstonesMax`.
   * `upTo`: deletes up to this revision are forgotten.
   */
  #dropTombstones(
    aged: Revision,
    { compacted, tombstonesMax, rowsMax }: { compacted: Revision; tombstonesMax: number; rowsMax: number },
  ): { upTo: Revision; done: boolean } {
    let upTo = 0;
    const isDue = (revision: Revision): boolean => this.#tombstones > tombstonesMax || revision <= aged;
    const oldest = this.#statements.oldestTombstones.all(compacted, rowsMax);
    for (const revision of oldest) {
      if (!isDue(revision)) return { upTo: Math.max(upTo, aged), done: true };
      this.#statements.remove.run(revision);
      this.#tombstones -= 1;
      upTo = revision;
    }
    const isEnd = oldest.length < rowsMax;
    return { upTo: isEnd ? Math.max(upTo, aged) : upTo, done: isEnd };
  }

  /** Gives a few free pages back. Returns true if enough have been given back. */
  #freePages(): boolean {
    const free = readPragma(this.#database, 'freelist_count');
    const allowed = Math.max(freePagesMin, readPragma(this.#database, 'page_count') * freePart);
    if (free <= allowed || readPragma(this.#database, 'auto_vacuum') === 0) return true;
    this.#database.pragma(`incremental_vacuum(${vacuumPages})`);
    return false;
  }

  #record({ compacted, tombstonesFrom, bytes }: Pick<CompactionStep, 'compacted' | 'tombstonesFrom' | 'bytes'>): void {
    this.#statements.forgetMoves.run(compacted);
    this.#statements.forgetMilestones.run(compacted);
    this.#statements.setMeta.run(compacted, 'compacted');
    this.#statements.setMeta.run(tombstonesFrom, 'tombstones_from');
    this.#statements.takeBytes.run(bytes);
    this.#statements.forgetMoments.run(tombstonesFrom);
  }
}

function prepare(database: Connection) {
  return {
    passed: database.prepare<[Revision, Revision, number], Passed>(
      /*sql*/ `SELECT ${summedColumns}, length(body) AS bytes FROM changes WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT ?`,
    ),
    remove: database.prepare(/*sql*/ `DELETE FROM changes WHERE revision = ?`),
    // No reader reads changes at or below C.
    forgetMoves: database.prepare(/*sql*/ `DELETE FROM path_moves WHERE revision <= ?`),
    forgetMilestones: database.prepare(/*sql*/ `DELETE FROM milestones WHERE revision <= ?`),
    forgetLife: database.prepare(/*sql*/ `UPDATE changes SET born = 0 WHERE revision = ?`),
    countTombstones: database
      .prepare<[Revision], number>(
        /*sql*/ `SELECT count(*) FROM changes INDEXED BY changes_tombstones WHERE kind = ${tombstone} AND revision <= ?`,
      )
      .pluck(),
    oldestTombstones: database
      .prepare<[Revision, number], Revision>(
        /*sql*/ `SELECT revision FROM changes INDEXED BY changes_tombstones WHERE kind = ${tombstone} AND revision <= ? ORDER BY revision LIMIT ?`,
      )
      .pluck(),
    setMeta: database.prepare(/*sql*/ `UPDATE meta SET value = ? WHERE name = ?`),
    takeBytes: database.prepare(/*sql*/ `UPDATE meta SET value = value - ? WHERE name = 'log_bytes'`),
    forgetMoments: database.prepare(/*sql*/ `DELETE FROM moments WHERE revision < (SELECT max(revision) FROM moments WHERE revision <= ?)`),
  };
}
