/**
 * When revisions were reached: the committer records a moment at intervals. By these moments,
 * compaction finds revisions older than an age. Every commit calls `aged`, so each call continues
 * at the last moment found. A revision that has aged stays aged, whatever the clock does.
 */
import type { Revision } from '../../domain/revision.js';
import type { Connection } from './database.js';

type Moment = Readonly<{ revision: Revision; atMs: number }>;

/** The time between two moments is at most this part of an age, and at most `intervalMsMax`. */
const intervalPart = 0.02;
const intervalMsMax = 60_000;

/** The interval between moments, in milliseconds: short enough for the shortest of the ages. */
export function momentInterval(...agesMs: readonly number[]): number {
  return Math.min(intervalMsMax, ...agesMs.map((ageMs) => Math.ceil(ageMs * intervalPart)));
}

export class Moments {
  readonly #ageMs: number;
  readonly #statements: ReturnType<typeof prepare>;
  #aged: Revision;
  /** The moment after `#aged`, if known. */
  #next: Moment | undefined;

  constructor(database: Connection, ageMs: number, nowMs: number) {
    this.#ageMs = ageMs;
    this.#statements = prepare(database);
    this.#aged = this.#statements.reachedBefore.get(nowMs - ageMs) ?? 0;
  }

  /** The newest revision known to be older than the age; 0 if there is none. */
  aged(nowMs: number): Revision {
    for (;;) {
      this.#next ??= this.#statements.behind.get(this.#aged);
      if (this.#next === undefined || this.#next.atMs > nowMs - this.#ageMs) return this.#aged;
      this.#aged = this.#next.revision;
      this.#next = undefined;
    }
  }

  /**
   * For how long the change after `compacted` has been older than the age; 0 if it is not older, or
   * if its age is unknown.
   */
  overdueMs(compacted: Revision, nowMs: number): number {
    if (this.aged(nowMs) <= compacted) return 0;
    const oldest = this.#statements.behind.get(compacted);
    return oldest === undefined ? 0 : Math.max(0, nowMs - this.#ageMs - oldest.atMs);
  }
}

function prepare(database: Connection) {
  return {
    reachedBefore: database
      .prepare<[number], Revision>(/*sql*/ `SELECT revision FROM moments WHERE at_ms <= ? ORDER BY revision DESC LIMIT 1`)
      .pluck(),
    behind: database.prepare<[Revision], Moment>(
      /*sql*/ `SELECT revision, at_ms AS atMs FROM moments WHERE revision > ? ORDER BY revision LIMIT 1`,
    ),
  };
}
