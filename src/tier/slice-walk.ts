/**
 * The reading of one slice as it stood at a revision, beside a tail that goes on from there: what a sync sends, and what a
 * digest sums up.
 *
 *   revision ──────┬──────────────────────────▶    W1 What has changed since is not sent from the snapshot: it would be older.
 *        snapshot ─┘ changes read by the tail      W2 The sum is of what crosses at the tail's position: the snapshot's, and what
 *                                                     each change since took away and put there.
 *
 * Bound: `touchedMax` keys that change while it goes on; beyond them it is given up and starts over.
 */
import type { Change } from '../domain/change.js';
import { addDigest, digestOf, emptyDigest, subtractDigest, type Digest } from '../domain/digest.js';
import type { Key } from '../domain/key.js';
import type { StoredObject } from '../domain/object.js';
import type { Snapshot } from '../domain/store-port.js';

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

  /** The digest of what crosses now; undefined without `sums`. */
  get sum(): Digest | undefined {
    return this.#sum;
  }

  /** Objects of the next page. Throws Refused(Expired) when the snapshot was held for too long. */
  async page(): Promise<readonly StoredObject[]> {
    const { objects, next } = await this.#snapshot.page(this.#after);
    this.#after = next;
    this.#isThrough = next === undefined;
    // The walk may wait long for its end, and a snapshot that is held keeps history from being compacted.
    if (this.#isThrough) this.#snapshot.close();
    return objects;
  }

  /** An object of a page crosses. Returns whether it has yet to be sent. */
  take({ key, body }: StoredObject): boolean {
    if (this.#sum !== undefined) this.#sum = addDigest(this.#sum, digestOf(key, body));
    return !this.#touched.has(textOf(key));
  }

  /** The tail has read a change of the key, which may mean nothing until its canonical path moves, or has sent it because that has moved. */
  touch(key: Key): void {
    if (!this.#isThrough) this.#touched.add(textOf(key));
  }

  /** The tail sends a change of the slice; `left` and `came` are what crossed of the key before and crosses now. */
  note({ key }: Pick<Change, 'key'>, left: StoredObject | undefined, came: StoredObject | undefined): void {
    if (this.#sum === undefined) return;
    if (left !== undefined) this.#sum = subtractDigest(this.#sum, digestOf(key, left.body));
    if (came !== undefined) this.#sum = addDigest(this.#sum, digestOf(key, came.body));
  }

  /** Something other than a change has moved what crosses. */
  giveUpSum(): void {
    this.#sum = undefined;
  }

  close(): void {
    this.#snapshot.close();
  }
}

function textOf({ cluster, namespace, name }: Key): string {
  return `${cluster}|${namespace}/${name}`;
}
