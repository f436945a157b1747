/**
 * The published and the compacted revision, and the epochs of revisions (epochs.ts).
 *
 * I11 `published` only rises.
 * I12 `compacted` rises before the committer compacts, so that no reader starts below it.
 */
import assert from 'node:assert/strict';
import type { Located, Revision } from '../../domain/revision.js';
import type { Revisions } from '../../domain/store-port.js';
import { countDigits, countOf, epochDigits, formatInEpoch, type Epoch } from '../epochs.js';
import type { Life } from './life.js';

export class SqliteRevisions implements Revisions {
  /** Rising. The last is the current epoch. */
  readonly #epochs: Epoch[];
  #published: Revision;
  #compacted: Revision;

  constructor({ epochs, revision, compacted }: Pick<Life, 'epochs' | 'revision' | 'compacted'>) {
    this.#epochs = [...epochs];
    this.#published = revision;
    this.#compacted = compacted;
  }

  get epoch(): number {
    return this.#epochs.at(-1)?.epoch ?? 0;
  }

  get published(): Revision {
    return this.#published;
  }

  get compacted(): Revision {
    return this.#compacted;
  }

  begin(epoch: Epoch): void {
    this.#epochs.push(epoch);
  }

  publish(revision: Revision): void {
    assert(revision >= this.#published, 'I11');
    this.#published = revision;
  }

  raise(compacted: Revision): void {
    this.#compacted = Math.max(this.#compacted, compacted);
  }

  /**
   * A revision keeps its epoch, so the resourceVersion of an unchanged object is the same in every
   * life.
   */
  format(revision: Revision): string {
    const epoch = this.#epochs[this.#placeOf(revision)];
    if (epoch === undefined) throw new Error('a store has at least one epoch');
    return formatInEpoch(epoch.epoch, countOf(epoch, revision));
  }

  locate(text: string): Located {
    const named = text.length === epochDigits + countDigits ? Number(text.slice(0, epochDigits)) : undefined;
    const place = this.#epochs.findLastIndex(({ epoch }) => epoch === named);
    const epoch = this.#epochs[place];
    if (epoch !== undefined) {
      const revision = Number(text.slice(epochDigits)) - epoch.nonce + epoch.firstRevision - 1;
      const end = this.#epochs[place + 1]?.firstRevision ?? this.#published + 1;
      // The first epoch also covers revision 0, because an empty store has a resourceVersion, too.
      const from = place === 0 ? epoch.firstRevision - 1 : epoch.firstRevision;
      if (revision >= from && revision < end) return { kind: 'ours', revision };
    }
    return { kind: BigInt(text) > BigInt(this.format(this.#published)) ? 'above' : 'below' };
  }

  /** Every resourceVersion names its epoch already. */
  formatPosition(revision: Revision): string {
    return this.format(revision);
  }

  locatePosition(text: string): Located {
    return this.locate(text);
  }

  /**
   * Nothing to wait for: this server is the only writer, and acknowledges only published commits.
   */
  async reachNewest(): Promise<void> {}

  /**
   * Mostly the current epoch; otherwise by binary search, because old objects are read as often as
   * new ones.
   */
  #placeOf(revision: Revision): number {
    let high = this.#epochs.length - 1;
    if ((this.#epochs[high]?.firstRevision ?? 0) <= revision) return high;
    let low = 0;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#epochs[middle]?.firstRevision ?? 0) <= revision) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
