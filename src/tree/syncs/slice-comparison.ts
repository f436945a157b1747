/**
 * Compares the objects of a slice at both ends of a link, before the slice is synced. This end sums
 * up a snapshot at the position of its `begin`. The other end sums up its own objects once it has
 * the `begin`. The outcome is the set of buckets that differ.
 */
import type { BucketSet } from '../../domain/slices/buckets.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Snapshot } from '../../domain/store-port.js';
import { Summary } from '../../domain/slices/summary.js';

export class SliceComparison {
  readonly #snapshot: Snapshot;
  readonly #summary = new Summary();
  #after: Key | undefined;
  #outcome: BucketSet | 'unknown' | undefined;
  #isRead = false;
  #other: Uint8Array | undefined;
  /** The sequence number of the begin, once it is sent. */
  sequence = 0;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  get isRead(): boolean {
    return this.#isRead;
  }

  /**
   * The buckets that differ. 'unknown': the other end has sent no summary, or the snapshot is gone.
   * Undefined: a summary is still missing.
   */
  get outcome(): BucketSet | 'unknown' | undefined {
    if (this.#other?.length === 0) return 'unknown';
    if (!this.#isRead || this.#other === undefined) return undefined;
    return (this.#outcome ??= this.#summary.differing(this.#other) ?? 'unknown');
  }

  /**
   * `filtered` returns those objects of a page that cross the link. Returns false after the last
   * page. Throws Refused(Expired) if the snapshot was held too long.
   */
  async page(filtered: (objects: readonly StoredObject[]) => Promise<readonly StoredObject[]>): Promise<boolean> {
    const { objects, next } = await this.#snapshot.page(this.#after);
    this.#summary.add(await filtered(objects));
    this.#after = next;
    if (next !== undefined) return true;
    this.#isRead = true;
    this.#snapshot.close();
    return false;
  }

  learn(digests: Uint8Array): void {
    this.#other ??= digests;
  }

  /** The snapshot is gone, so the comparison has no outcome. */
  giveUp(): void {
    this.#other = new Uint8Array();
  }

  close(): void {
    this.#snapshot.close();
  }
}
