/**
 * The text of a revision: its epoch in 7 digits, the revision in 12, a plain decimal below 2^63 (D2).
 *
 *   epoch 1234567 from 1 ──────┐ epoch 1234890 from 501 ─────▶ revision      I1 (e, r) is ours exactly when r lies in e's
 *             r = 1 … 500      │         r = 501 …                             recorded range and is not in the future.
 */
import type { Located, Revision } from '../../domain/revision.js';

export type Epoch = Readonly<{ epoch: number; firstRevision: Revision }>;

const epochDigits = 7;
const revisionDigits = 12;
const bornMin = 1_000_000;
const bornSpan = 7_000_000;
const stepMax = 1000;

/** The epoch a new store is born with; `random` gives [0, 1). */
export function firstEpoch(random: () => number): number {
  return bornMin + Math.floor(random() * bornSpan);
}

/** The epoch that follows when history may have been rolled back. */
export function nextEpoch(epoch: number, random: () => number): number {
  return epoch + 1 + Math.floor(random() * stepMax);
}

export class Epochs {
  readonly #epochs: readonly Epoch[];

  /** In rising order; the last one is the current one. */
  constructor(epochs: readonly Epoch[]) {
    this.#epochs = epochs;
  }

  format(revision: Revision): string {
    const epoch = this.#epochs.findLast(({ firstRevision }) => firstRevision <= revision) ?? this.#epochs[0];
    if (epoch === undefined) throw new Error('a store has at least one epoch');
    return `${epoch.epoch}${String(revision).padStart(revisionDigits, '0')}`;
  }

  /** Where `text`, a decimal above zero, stands when everything up to `published` is visible. */
  locate(text: string, published: Revision): Located {
    if (text.length === epochDigits + revisionDigits) {
      const epoch = Number(text.slice(0, epochDigits));
      const revision = Number(text.slice(epochDigits));
      const at = this.#epochs.findIndex((each) => each.epoch === epoch);
      const found = this.#epochs[at];
      const end = this.#epochs[at + 1]?.firstRevision ?? published + 1;
      // The first epoch of a store also covers revision 0: an empty store has a version too.
      const from = at === 0 ? 0 : (found?.firstRevision ?? 0);
      if (found !== undefined && revision >= from && revision < end) return { kind: 'ours', revision };
    }
    return { kind: BigInt(text) > BigInt(this.format(published)) ? 'above' : 'below' };
  }
}
