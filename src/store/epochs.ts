/**
 * The text of a revision, its resourceVersion: an epoch in 9 digits, then a count in 10. Together
 * they are a plain decimal below 2^63.
 *
 *   epoch 217000123 from 1 ────────┐ epoch 217086554 from 501 ────▶ revision
 *         count = nonce + 1 … 500  │       count = nonce + 1 …
 *
 * An epoch is one life of a store, from start to start. A store can return to an older state (an
 * old file, a snapshot of the volume, recovery) only at a start. So each resourceVersion of the
 * lost life has an epoch that the older store does not know, or a count that it has not given.
 *
 * I1 This store gave a resourceVersion exactly if it knows the epoch and the count is in the range
 *    of that epoch.
 * I21 No resourceVersion is given twice. Of two starts from one state, the later one gets the
 *     higher epoch from the clock. Within `spread` seconds, or without a clock, only random numbers
 *     make their epochs differ. If the epochs are equal, the counts begin at different nonces.
 */
import { CacheError } from '../domain/errors.js';
import type { Revision } from '../domain/revision.js';

/**
 * `firstRevision` has the count `nonce + 1`. The count `nonce` is that of the state with which the
 * epoch began.
 */
export type Epoch = Readonly<{ epoch: number; firstRevision: Revision; nonce: number }>;

export type EpochParts = Readonly<{
  /** Milliseconds since 1970, by a clock that may be wrong. */
  nowMs: number;
  /** In [0, 1). */
  random: () => number;
}>;

export const epochDigits = 9;
export const countDigits = 10;
const countMax = 10 ** countDigits - 1;
const nonceMax = 10 ** (countDigits - 1);
/** More than the changes that one commit can make. */
const commitChangesMax = 1_000_000;

const startMs = Date.UTC(2020, 0, 1);
const epochMin = 10 ** (epochDigits - 1);
/** With any count behind it, the text stays below 2^63. */
const epochMax = 922_337_202;
/**
 * The year 2045, in seconds since 2020. `nextEpoch` ignores a later clock, which would use up the
 * epochs.
 */
const clockMax = (Date.UTC(2045, 0, 1) - startMs) / 1000;
const spread = 10_000;
/**
 * The spread once epochs have passed `clockMax`. The remaining epochs last for a million starts.
 */
const spreadAtLast = 100;
const idDigits = 16;

/**
 * The epoch of a start. `last`: the highest epoch that the store knows; 0 for a new store. Throws
 * CacheError if no epoch is left.
 */
export function nextEpoch(last: number, { nowMs, random }: EpochParts): number {
  const seconds = Math.floor((nowMs - startMs) / 1000);
  const least = Math.max(last + 1, epochMin, seconds < clockMax ? seconds : 0);
  const epoch = least + Math.floor(random() * (least < clockMax ? spread : spreadAtLast));
  if (epoch > epochMax) throw new CacheError('the store has used up its epochs: begin with an empty store');
  return epoch;
}

export function nextNonce({ random }: Pick<EpochParts, 'random'>): number {
  return Math.floor(random() * nonceMax);
}

export function countOf({ firstRevision, nonce }: Epoch, revision: Revision): number {
  return nonce + revision - firstRevision + 1;
}

/** Whether the epoch may have too few counts left for the next commit. */
export function isUsedUp(epoch: Epoch, revision: Revision): boolean {
  return countOf(epoch, revision) > countMax - commitChangesMax;
}

/** On etcd, counts have no nonce. */
export function formatInEpoch(epoch: number, count: number): string {
  return `${epoch}${String(count).padStart(countDigits, '0')}`;
}

/**
 * The id that a new store gets and keeps in all its lives: 16 hexadecimal digits. `random` gives
 * [0, 1).
 */
export function newCacheId(random: () => number): string {
  return Array.from({ length: idDigits }, () => Math.floor(random() * 16).toString(16)).join('');
}
