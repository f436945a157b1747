/**
 * What both ends of a link hold of a slice, compared before it is synced: this end's is that of a snapshot at the position of its `begin`, the
 * other end's is of what it holds once it has that.
 */
import type { Key } from '../domain/key.js';
import type { StoredObject } from '../domain/object.js';
import type { Snapshot } from '../domain/ports.js';
import { Summary } from '../domain/summary.js';

export class SliceComparison {
  readonly #snapshot: Snapshot;
  readonly #summary = new Summary();
  #after: Key | undefined;
  #own: string | undefined;
  #other: string | undefined;
  /** Of the begin, once it is sent. */
  sequence = 0;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  get isRead(): boolean {
    return this.#own !== undefined;
  }

  /** Undefined: both are not known yet. */
  get isSame(): boolean | undefined {
    if (this.#other === '') return false;
    return this.#own === undefined || this.#other === undefined ? undefined : this.#own === this.#other;
  }

  /** Reads one page, of which `filtered` is what crosses. False: it was the last. Throws Refused(Expired) when the snapshot was held for too long. */
  async page(filtered: (objects: readonly StoredObject[]) => Promise<readonly StoredObject[]>): Promise<boolean> {
    const { objects, next } = await this.#snapshot.page(this.#after);
    this.#summary.add(await filtered(objects));
    this.#after = next;
    if (next !== undefined) return true;
    this.#own = this.#summary.format();
    this.#snapshot.close();
    return false;
  }

  learn(summary: string): void {
    this.#other = summary;
  }

  close(): void {
    this.#snapshot.close();
  }
}
