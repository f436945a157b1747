/** A scope of a memory store at a revision, page by page. The first page collects its rows; they are shared. */
import type { Key } from '../../domain/key.js';
import type { Snapshot, SnapshotPage } from '../../domain/store-port.js';
import type { Revision } from '../../domain/revision.js';
import type { Scope } from '../../domain/scope.js';
import type { MemoryRow } from './log.js';
import { orderOf, type Covered, type MemoryReader } from './reader.js';

export type MemoryPageLimits = Readonly<{ rowsMax: number; bytesMax: number }>;

export type MemorySnapshotParts = Readonly<{ reader: MemoryReader; covered: Covered; release: () => void }>;

export class MemorySnapshot implements Snapshot {
  readonly revision: Revision;
  readonly #scope: Scope;
  readonly #parts: MemorySnapshotParts;
  readonly #limits: MemoryPageLimits;
  #rows: readonly MemoryRow[] | undefined;

  constructor(scope: Scope, revision: Revision, parts: MemorySnapshotParts, limits: MemoryPageLimits) {
    this.revision = revision;
    this.#scope = scope;
    this.#parts = parts;
    this.#limits = limits;
  }

  async page(after: Key | undefined): Promise<SnapshotPage> {
    await this.#parts.covered(this.revision);
    this.#rows ??= this.#parts.reader.standing(this.#scope, this.revision);
    const from = after === undefined ? 0 : this.#behind(this.#rows, after);
    let upTo = from;
    let bytes = 0;
    while (upTo < this.#rows.length && upTo - from < this.#limits.rowsMax && bytes < this.#limits.bytesMax) {
      bytes += this.#rows[upTo]?.body?.bytes.length ?? 0;
      upTo += 1;
    }
    const objects = this.#rows.slice(from, upTo).flatMap((row) => this.#parts.reader.object(row) ?? []);
    return { objects, next: upTo < this.#rows.length ? this.#rows[upTo - 1]?.key : undefined };
  }

  close(): void {
    this.#parts.release();
    this.#rows = undefined;
  }

  /** The index of the first row after that key. */
  #behind(rows: readonly MemoryRow[], after: Key): number {
    const order = orderOf(this.#scope);
    let [from, upTo] = [0, rows.length];
    while (from < upTo) {
      const middle = (from + upTo) >> 1;
      const row = rows[middle];
      if (row !== undefined && order(row.key, after) <= 0) from = middle + 1;
      else upTo = middle;
    }
    return from;
  }
}
