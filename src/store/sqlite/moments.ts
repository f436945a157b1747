/**
 * When revisions were reached, as the committer records it at intervals. Compaction uses it to find
 * revisions older than an age. Each call continues at the last moment found, because every commit
 * calls it. A revision that has aged stays aged, whatever the clock does.
 */
import type { Revision } from '../../domain/revision.js';
import type { Connection } from './database.js';

type Moment = Readonly<{ revision: Revision; atMs: number }>;

/** The time between two moments is at most this part of an age, and at most `intervalMsMax`. */
const intervalPart = 0.02;
const intervalMsMax = 60_000;

/**
 * How often the committer records a moment, in milliseconds. The interval follows the shortest age,
 * so that this age is kept closely.
 */
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

  /** The time since the change after `compacted` passed the age, as far as is known; else 0. */
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
