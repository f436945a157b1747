/**
 * Reads one slice as it was at a revision, while the tail reads the later changes. A sync sends
 * what the walk reads; a digest sums it up.
 *
 *   revision ──────┬──────────────────────────▶
 *        snapshot ─┘ changes read by the tail
 *
 * W1 A key that has changed since is not sent from the snapshot, whose version is older.
 * W2 The walk adds each object of the snapshot that crosses. For each change that the tail sends
 *    meanwhile, it subtracts the version that had crossed, and adds the version that crosses now.
 *    So after the last page, the sum covers what crosses at the tail's position.
 *
 * Bound: `touchedMax` keys that change meanwhile. With more, the walk is given up and starts over.
 */
import type { Change } from '../../domain/change.js';
import { addDigest, digestOf, emptyDigest, subtractDigest, type Digest } from '../../domain/slices/digest.js';
import { formatObjectName, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Snapshot } from '../../domain/store-port.js';

const touchedMax = 200_000;

export class SliceWalk {
  readonly #snapshot: Snapshot;
  readonly #touched = new Set<string>();
  #after: Key | undefined;
  #isThrough = false;
  #sum: Digest | undefined;

  /** `sums`: whether to compute a digest, which costs a hash of every object. */
  constructor(snapshot: Snapshot, { sums }: Readonly<{ sums: boolean }>) {
    this.#snapshot = snapshot;
    this.#sum = sums ? emptyDigest : undefined;
  }

  get isThrough(): boolean {
    return this.#isThrough;
  }

  /** So many keys have changed meanwhile that starting over is cheaper. */
  get isOverrun(): boolean {
    return this.#touched.size > touchedMax;
  }

  /** The digest of what crosses now. Undefined without `sums`, or after `giveUpSum`. */
  get sum(): Digest | undefined {
    return this.#sum;
  }

  /** Reads the next page. Throws Refused(Expired) if the snapshot was held too long. */
  async page(): Promise<readonly StoredObject[]> {
    const { objects, next } = await this.#snapshot.page(this.#after);
    this.#after = next;
    this.#isThrough = next === undefined;
    // The `end` of the sync may come much later, and an open snapshot keeps history from being
    // compacted.
    if (this.#isThrough) this.#snapshot.close();
    return objects;
  }

  /**
   * Adds to the sum an object that crosses. Returns whether the sync must still send the object.
   */
  add({ key, body }: StoredObject): boolean {
    if (this.#sum !== undefined) this.#sum = addDigest(this.#sum, digestOf(key, body));
    return !this.#touched.has(formatObjectName(key));
  }

  /**
   * Keeps the snapshot's version of the key from being sent. The tail has read a change of the key,
   * or has sent the key because its path moved. Call it for changes that do not cross, too: a path
   * that moves later may let the object cross.
   */
  touch(key: Key): void {
    if (!this.#isThrough) this.#touched.add(formatObjectName(key));
  }

  /**
   * The tail sends a change. `before`: the version that had crossed; `after`: the version that
   * crosses now. Undefined: none.
   */
  apply({ key }: Pick<Change, 'key'>, before: StoredObject | undefined, after: StoredObject | undefined): void {
    if (this.#sum === undefined) return;
    if (before !== undefined) this.#sum = subtractDigest(this.#sum, digestOf(key, before.body));
    if (after !== undefined) this.#sum = addDigest(this.#sum, digestOf(key, after.body));
  }

  /** Something other than a change has altered which objects cross. */
  giveUpSum(): void {
    this.#sum = undefined;
  }

  close(): void {
    this.#snapshot.close();
  }
}
