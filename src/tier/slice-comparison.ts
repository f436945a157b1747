/**
 * What both ends of a link hold of a slice, compared before it is synced: this end sums up a snapshot at the position of its `begin`, the
 * other end what it holds once it has that `begin`. The outcome is the buckets in which they differ.
 */
import type { BucketSet } from '../domain/buckets.js';
import type { Key } from '../domain/key.js';
import type { StoredObject } from '../domain/object.js';
import type { Snapshot } from '../domain/store-port.js';
import { Summary } from '../domain/summary.js';

export class SliceComparison {
  readonly #snapshot: Snapshot;
  readonly #summary = new Summary();
  #after: Key | undefined;
  #outcome: BucketSet | 'unknown' | undefined;
  #isRead = false;
  #other: Uint8Array | undefined;
  /** The number of the begin, once it is sent. */
  sequence = 0;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  get isRead(): boolean {
    return this.#isRead;
  }

  /** The buckets that differ; 'unknown': the other end has no summary to give. Undefined: both are not known yet. */
  get outcome(): BucketSet | 'unknown' | undefined {
    if (this.#other?.length === 0) return 'unknown';
    if (!this.#isRead || this.#other === undefined) return undefined;
    return (this.#outcome ??= this.#summary.differing(this.#other) ?? 'unknown');
  }

  /** Reads one page; `filtered` returns what crosses of it. False: it was the last. Throws Refused(Expired) when the snapshot was held too long. */
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

  /** Its own snapshot is gone. */
  giveUp(): void {
    this.#other = new Uint8Array();
  }

  close(): void {
    this.#snapshot.close();
  }
}
