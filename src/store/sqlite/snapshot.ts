/**
 * A scope at a revision R, read page by page in key order. Nothing is kept between pages. No read
 * transaction stays open between two turns, so nothing pins the WAL. A page consists of the keys
 * that exist behind `after`, merged with keys deleted since R:
 *
 *   exists, at r ≤ R            as it is
 *   exists, at r > R            its object at R (`Rows.revisionAt`); nothing if born after R
 *   deleted since R, born ≤ R   its object at R; found in key order, bucket by bucket of the log
 *
 * Existing keys are read first. So the first read finds a key that is deleted between the two
 * reads, and the second finds a key that is recreated between them.
 *
 * I9 A snapshot has every key that existed at R exactly once.
 *
 * Bounds: a page reads `rowsMax` existing keys, returns at most as many, and stops at `bytesMax` of
 * bodies. A turn works for about `turnMs`.
 */
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Clock } from '../../domain/ports.js';
import type { Snapshot, SnapshotPage } from '../../domain/store-port.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { SnapshotLimits } from '../store-options.js';
import { FirstKeys, type KeyAt } from './first-keys.js';
import type { Rows } from './rows.js';
import type { Entry, KeyRange, Walks } from './walks.js';

const turnMs = 4;

/**
 * The keys of a range that existed at R, in order. `last`: the last key that was read; undefined at
 * the end.
 */
type Scanned = Readonly<{ held: readonly KeyAt[]; last: Key | undefined }>;

type SnapshotParts = Readonly<{
  rows: Rows;
  walks: Walks;
  /** Throws if history no longer covers the snapshot. */
  assertCovered: () => void;
  release: () => void;
  clock: Clock;
  turn: () => Promise<void>;
}>;

export class SqliteSnapshot implements Snapshot {
  readonly revision: Revision;
  readonly #scope: Scope;
  readonly #limits: SnapshotLimits;
  readonly #parts: SnapshotParts;

  constructor(scope: Scope, revision: Revision, parts: SnapshotParts, limits: SnapshotLimits) {
    this.revision = revision;
    this.#scope = scope;
    this.#parts = parts;
    this.#limits = limits;
  }

  async page(after: Key | undefined): Promise<SnapshotPage> {
    // Also for a type without objects, which may have had objects at that revision.
    this.#parts.assertCovered();
    const isOneOfMany = this.#scope.identity === '*';
    let untilMs = this.#parts.clock.now() + turnMs;
    for (const keyRange of this.#parts.walks.stretches(this.#scope, after, this.#limits.rowsMax)) {
      const { held, last } = await this.#scan(keyRange);
      if (held.length > 0 || last !== undefined)
        return this.#read(() => this.#objects(held, last ?? (isOneOfMany ? held.at(-1)?.key : undefined)));
      if (this.#parts.clock.now() < untilMs) continue;
      await this.#parts.turn();
      untilMs = this.#parts.clock.now() + turnMs;
    }
    return { objects: [], next: undefined };
  }

  close(): void {
    this.#parts.release();
  }

  /** One read transaction. */
  #read<T>(read: () => T): T {
    this.#parts.assertCovered();
    return this.#parts.rows.read(read);
  }

  async #scan(keyRange: KeyRange): Promise<Scanned> {
    const keys = new FirstKeys(this.#parts.walks.order(this.#scope), keyRange.rowsMax);
    const add = (entries: readonly Entry[]): void => {
      keys.add(this.#heldOf(entries), entries.length < keyRange.rowsMax ? undefined : entries.at(-1)?.key);
    };
    const buckets = this.#read(() => {
      add(this.#parts.walks.existing(keyRange));
      return this.#parts.walks.bucketsSince(this.revision);
    });
    for (let done = 0; done < buckets.length;) {
      if (done > 0) await this.#parts.turn();
      const untilMs = this.#parts.clock.now() + turnMs;
      this.#read(() => {
        for (; done < buckets.length && this.#parts.clock.now() < untilMs; done++)
          add(this.#parts.walks.deletedSince(keyRange, { bucket: buckets[done] ?? 0, at: this.revision, upTo: keys.last }));
      });
    }
    return { held: keys.inOrder(), last: keys.last };
  }

  /**
   * The keys with their revisions at R, without keys outside the scope and lives that began after
   * R.
   */
  #heldOf(entries: readonly Entry[]): readonly KeyAt[] {
    const found: KeyAt[] = [];
    for (const { key, revision, born } of entries) {
      if (born > this.revision || !matches(this.#scope, key)) continue;
      found.push({ key, revision: revision <= this.revision ? revision : this.#parts.rows.revisionAt({ revision, born }, this.revision) });
    }
    return found;
  }

  #objects(held: readonly KeyAt[], last: Key | undefined): SnapshotPage {
    const objects: StoredObject[] = [];
    let bytes = 0;
    for (const { key, revision } of held) {
      const object = this.#parts.rows.objectAt(key, revision, true);
      objects.push(object);
      bytes += object.body.bytes.length;
      if (bytes >= this.#limits.bytesMax && (last !== undefined || key !== held.at(-1)?.key)) return { objects, next: key };
    }
    return { objects, next: last };
  }
}
