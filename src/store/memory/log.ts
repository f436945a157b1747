/**
 * The change log in memory: the rows by their revisions, and for each what superseded it. Bodies are shared by reference
 * with writers and readers.
 *
 *   revision   10 put a ── 25 put a ── 31 delete a        C = 25: row 10 goes, row 25 stays (superseded by 31).
 *                 └ replaced by 25  └ replaced by 31      C = 31: row 25 goes, row 31 stays as a tombstone of `a`.
 *
 * Bound: the live objects, whatever `compact` has not passed, and `tombstonesMax` tombstones.
 */
import assert from 'node:assert/strict';
import type { MovedPath } from '../../domain/change.js';
import type { Digest } from '../../domain/digest.js';
import type { Key } from '../../domain/key.js';
import type { Body } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';

/** A change. */
export type MemoryRow = Readonly<{
  revision: Revision;
  key: Key;
  /** Undefined for a delete. */
  body: Body | undefined;
  /** The row that it superseded; 0 when the key held nothing. */
  replaced: Revision;
  /** Of the object, within its slice. */
  digest: Digest;
  movedPath: MovedPath | undefined;
}>;

type Range = Readonly<{ after: Revision; upTo: Revision }>;

export class MemoryLog {
  readonly #rows: Map<Revision, MemoryRow>;
  /** Revisions of deletes, rising; those at or below C are tombstones. */
  #tombstones: Revision[];
  #revision: Revision;
  #compacted: Revision;
  #rememberedFrom: Revision;

  constructor(other?: MemoryLog) {
    this.#rows = new Map(other === undefined ? [] : other.#rows);
    this.#tombstones = other === undefined ? [] : [...other.#tombstones];
    this.#revision = other?.revision ?? 0;
    this.#compacted = other?.compacted ?? 0;
    this.#rememberedFrom = other?.rememberedFrom ?? 0;
  }

  get revision(): Revision {
    return this.#revision;
  }

  get compacted(): Revision {
    return this.#compacted;
  }

  /** All deletes after this revision are remembered. */
  get rememberedFrom(): Revision {
    return this.#rememberedFrom;
  }

  append(change: Omit<MemoryRow, 'revision'>): MemoryRow {
    this.#revision += 1;
    const row = { revision: this.#revision, ...change };
    this.#rows.set(row.revision, row);
    if (row.body === undefined) this.#tombstones.push(row.revision);
    return row;
  }

  row(revision: Revision): MemoryRow | undefined {
    return this.#rows.get(revision);
  }

  /** What the key of `row` held at a revision below it. */
  heldAt(row: MemoryRow, at: Revision): MemoryRow | undefined {
    let held: MemoryRow | undefined = row;
    while (held !== undefined && held.revision > at) held = this.#rows.get(held.replaced);
    return held?.body === undefined ? undefined : held;
  }

  /** How the canonical path of a logical cluster first moved after a revision that is not compacted. */
  moveAfter(at: Revision, { shard, cluster }: Pick<Key, 'shard' | 'cluster'>): MovedPath | undefined {
    for (const { key, movedPath } of this.rows({ after: at, upTo: this.#revision }))
      if (movedPath !== undefined && key.shard === shard && key.cluster === cluster) return movedPath;
    return undefined;
  }

  /** The live rows, in rising order. */
  *rows({ after, upTo }: Range): Iterable<MemoryRow> {
    for (let revision = after + 1; revision <= upTo; revision += 1) {
      const row = this.#rows.get(revision);
      if (row !== undefined) yield row;
    }
  }

  /** Drops what was superseded up to there, and the tombstones among it that are too many. */
  compact(upTo: Revision, tombstonesMax: number): void {
    assert(upTo <= this.#revision, 'nothing is compacted before it happened');
    for (const { replaced } of this.rows({ after: this.#compacted, upTo })) this.#rows.delete(replaced);
    this.#compacted = Math.max(this.#compacted, upTo);
    const passed = this.#tombstones.filter((revision) => revision <= this.#compacted);
    const floor = passed.at(-1 - tombstonesMax) ?? 0;
    for (const revision of passed) if (revision <= floor) this.#rows.delete(revision);
    this.#tombstones = this.#tombstones.filter((revision) => revision > floor);
    this.#rememberedFrom = Math.max(this.#rememberedFrom, floor);
  }
}
