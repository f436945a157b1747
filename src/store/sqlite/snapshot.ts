/**
 * A scope at a revision R, read page by page in key order. Nothing is remembered from page to page, and nothing pins the WAL between
 * two turns. A page is what exists after its key, merged with what was deleted since R:
 *
 *   exists, at r ≤ R          → as it is
 *   exists, at r > R          → born after R: it was not there; else what it held at R (`Rows.heldAt`)
 *   deleted since R, born ≤ R → what it held at R; found in key order, bucket by bucket of the log
 *
 * What exists is read first: a key that is deleted meanwhile was found there, one that is recreated is found among the deleted.
 *
 * Bounds: a page looks at `rowsMax` existing keys and returns as many at most, and stops at `bytesMax` of bodies. A turn works for
 * about `turnMs`. I9 Within a snapshot every key that existed at R comes exactly once.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Snapshot, SnapshotPage } from '../../domain/store-port.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import { FirstKeys, type Held } from './first-keys.js';
import type { Rows } from './rows.js';
import type { Entry, Stretch, Walks } from './walks.js';

const turnMs = 4;

export type SnapshotLimits = Readonly<{ rowsMax: number; bytesMax: number }>;

/** What existed in a stretch of keys, in order; `last` is the last key looked at, undefined at the end. */
type Looked = Readonly<{ held: readonly Held[]; last: Key | undefined }>;

export class SqliteSnapshot implements Snapshot {
  readonly revision: Revision;
  readonly #scope: Scope;
  readonly #rows: Rows;
  readonly #walks: Walks;
  readonly #limits: SnapshotLimits;
  /** Throws when history no longer covers the snapshot. */
  readonly #assertCovered: () => void;
  readonly #release: () => void;

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
  }

  async page(after: Key | undefined): Promise<SnapshotPage> {
    // Also for a type that holds nothing: it may have held something then.
    this.#assertCovered();
    const isOneOfMany = this.#scope.identity === '*';
    let untilMs = performance.now() + turnMs;
    for (const stretch of this.#walks.stretches(this.#scope, after, this.#limits.rowsMax)) {
      const { held, last } = await this.#look(stretch);
      if (held.length > 0 || last !== undefined)
        return this.#read(() => this.#objects(held, last ?? (isOneOfMany ? held.at(-1)?.key : undefined)));
      if (performance.now() < untilMs) continue;
      await turn();
      untilMs = performance.now() + turnMs;
    }
    return { objects: [], next: undefined };
  }

  close(): void {
    this.#release();
  }

  /** One read transaction. */
  #read<T>(read: () => T): T {
    this.#assertCovered();
    return this.#rows.read(read);
  }

  async #look(stretch: Stretch): Promise<Looked> {
    const keys = new FirstKeys(this.#walks.order(this.#scope), stretch.rowsMax);
    const add = (entries: readonly Entry[]): void => {
      keys.add(this.#heldOf(entries), entries.length < stretch.rowsMax ? undefined : entries.at(-1)?.key);
    };
    const buckets = this.#read(() => {
      add(this.#walks.standing(stretch));
      return this.#walks.bucketsSince(this.revision);
    });
    for (let done = 0; done < buckets.length;) {
      if (done > 0) await turn();
      const untilMs = performance.now() + turnMs;
      this.#read(() => {
        for (; done < buckets.length && performance.now() < untilMs; done++)
          add(this.#walks.ended(stretch, { bucket: buckets[done] ?? 0, at: this.revision, upTo: keys.last }));
      });
    }
    return { held: keys.inOrder(), last: keys.last };
  }

  /** What these lives held at R: those that are in the scope and had begun. */
  #heldOf(entries: readonly Entry[]): readonly Held[] {
    const found: Held[] = [];
    for (const { key, revision, born } of entries) {
      if (born > this.revision || !matches(this.#scope, key)) continue;
      found.push({ key, revision: revision <= this.revision ? revision : this.#rows.heldAt({ revision, born }, this.revision) });
    }
    return found;
  }

  #objects(held: readonly Held[], last: Key | undefined): SnapshotPage {
    const objects: StoredObject[] = [];
    let bytes = 0;
    for (const { key, revision } of held) {
      const object = this.#rows.standing(key, revision, true);
      objects.push(object);
      bytes += object.body.bytes.length;
      if (bytes >= this.#limits.bytesMax && (last !== undefined || key !== held.at(-1)?.key)) return { objects, next: key };
    }
    return { objects, next: last };
  }
}
