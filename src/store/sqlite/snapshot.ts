/**
 * A scope at a revision R, read page by page in key order. A page is one short read transaction; nothing pins the WAL
 * between pages (D6). Rows that changed since R are told back through the revisions they replaced:
 *
 *   objects row at r ≤ R   → as it is            objects row at r > R → follow `replaced` to ≤ R, or it was not there yet
 *   deleted since R        → not in `objects`: found in the log, told back likewise, and merged in at its place
 *
 * Bounds: a page looks at `rowsMax` rows and stops at `bytesMax` of bodies; `deletesMax` deletes are looked at in one tick;
 * `resurrectedMax` deleted keys are remembered, beyond that the snapshot is given up (410). I9 Within a snapshot every key that stood at R comes exactly once.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Snapshot, SnapshotPage } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import { expired, Refused } from '../../domain/errors.js';
import type { Rows } from './rows.js';
import type { Entry, Walks } from './walks.js';

const deletesMax = 2000;

export type SnapshotLimits = Readonly<{ rowsMax: number; bytesMax: number; resurrectedMax: number }>;

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

  constructor(
    scope: Scope,
    revision: Revision,
    parts: { rows: Rows; walks: Walks; assertCovered: () => void; release: () => void },
    limits: SnapshotLimits,
  ) {
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
    for (;;) {
      this.#assertCovered();
      const page = this.#rows.database.transaction(() => (this.#resurrect() ? this.#read(after) : undefined))();
      if (page !== undefined) return page;
      await turn();
    }
  }

  close(): void {
    this.#release();
  }

  #read(after: Key | undefined): SnapshotPage {
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
    const live: Entry[] = [];
    for (const entry of entries) {
      if (!matches(this.#scope, entry.key)) continue;
      const revision = entry.revision <= this.revision ? entry.revision : this.#rows.heldAt(entry.revision, this.revision);
      if (revision === entry.revision) live.push(entry);
      else if (revision !== undefined) live.push({ key: entry.key, revision });
    }
    if (this.#resurrected.length === 0) return { entries: live, last };
    const order = this.#walks.order(this.#scope);
    const between = this.#resurrected.filter(
      ({ key }) => (after === undefined || order(key, after) > 0) && (last === undefined || order(key, last) <= 0),
    );
    return { entries: [...live, ...between].toSorted((a, b) => order(a.key, b.key)), last };
  }

  /** Takes note of the keys deleted since this was last asked, of `deletesMax` at most; says whether those were all. */
  #resurrect(): boolean {
    const rows = this.#walks.deletedSince(this.#deletesSeen, deletesMax);
    for (const row of rows) {
      this.#deletesSeen = row.revision;
      const key = this.#rows.key(row);
      if (!matches(this.#scope, key)) continue;
      const revision = this.#rows.heldAt(row.revision, this.revision);
      if (revision !== undefined) this.#resurrected.push({ key, revision });
    }
    if (this.#resurrected.length > this.#limits.resurrectedMax) {
      throw new Refused(expired(`more than ${this.#limits.resurrectedMax} objects were deleted since, please start over`));
    }
    return rows.length < deletesMax;
  }
}
