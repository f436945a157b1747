/**
 * The mutations that were sent in one connection and are not acknowledged.
 *
 *  sequence ── acknowledged ──┬── unacknowledged ──┬── next
 *                             └ at most the credit ┘
 *
 * V1 Mutations are numbered from 1 without a gap.
 * V2 Nothing is sent beyond the credit. A mutation larger than the credit's bytes is sent when
 *    nothing else is unacknowledged.
 * V3 The window keeps each mutation until it is acknowledged or taken back.
 */
import { entryOf } from '../domain/base/entry-of.js';
import type { Credit } from '../frames/frame.js';
import type { Pending } from './batch.js';

/**
 * `isRefused`: the cache has refused the mutation. Its acknowledgement then says only that the
 * cache has decided.
 */
export type Sent<Owner> = Readonly<{ owner: Owner; item: Pending }> & { isRefused: boolean };

/** The unacknowledged mutations of one owner, and when its source reported the oldest. */
export type Tally = Readonly<{ mutations: number; bytes: number; oldestMs: number }>;

export class Window<Owner> {
  #credit: Credit;
  #sent: Sent<Owner>[] = [];
  readonly #owned = new Map<Owner, number>();
  #bytes = 0;
  #acknowledged = 0;

  constructor(credit: Credit) {
    this.#credit = credit;
  }

  get credit(): Credit {
    return this.#credit;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  get unacknowledged(): Credit {
    return { mutations: this.#sent.length, bytes: this.#bytes };
  }

  get hasCredit(): boolean {
    return this.#sent.length < this.#credit.mutations && this.#bytes < this.#credit.bytes;
  }

  fits(mutations: number, bytes: number): boolean {
    if (!this.hasCredit || this.#sent.length + mutations > this.#credit.mutations) return false;
    return this.#sent.length === 0 || this.#bytes + bytes <= this.#credit.bytes;
  }

  /** Adds the mutations of the next frame; returns the number of the first. */
  add(owner: Owner, items: readonly Pending[]): number {
    const sequence = this.#acknowledged + this.#sent.length + 1;
    for (const item of items) {
      this.#sent.push({ owner, item, isRefused: false });
      this.#bytes += item.bytes;
    }
    this.#owned.set(owner, (this.#owned.get(owner) ?? 0) + items.length);
    return sequence;
  }

  /**
   * Returns the mutations that `sequence` acknowledges, in order; undefined if that number was
   * never sent. A number that was already acknowledged only updates the credit.
   */
  acknowledge(sequence: number, credit: Credit): readonly Sent<Owner>[] | undefined {
    if (sequence > this.#acknowledged + this.#sent.length) return undefined;
    this.#credit = credit;
    const done = this.#sent.splice(0, Math.max(0, sequence - this.#acknowledged));
    this.#acknowledged += done.length;
    for (const { owner, item } of done) {
      this.#bytes -= item.bytes;
      const left = (this.#owned.get(owner) ?? 0) - 1;
      if (left > 0) this.#owned.set(owner, left);
      else this.#owned.delete(owner);
    }
    return done;
  }

  find(sequence: number): Sent<Owner> | undefined {
    return this.#sent[sequence - this.#acknowledged - 1];
  }

  has(owner: Owner): boolean {
    return this.#owned.has(owner);
  }

  /** Removes and returns all unacknowledged mutations, by owner and in order. */
  takeBack(): ReadonlyMap<Owner, readonly Pending[]> {
    const back = new Map<Owner, Pending[]>();
    for (const { owner, item } of this.#sent) entryOf(back, owner, (): Pending[] => []).push(item);
    this.#sent = [];
    this.#owned.clear();
    this.#bytes = 0;
    return back;
  }

  tally(): ReadonlyMap<Owner, Tally> {
    const tallies = new Map<Owner, { mutations: number; bytes: number; oldestMs: number }>();
    for (const { owner, item } of this.#sent) {
      const tally = entryOf(tallies, owner, () => ({ mutations: 0, bytes: 0, oldestMs: item.sinceMs }));
      tally.mutations += 1;
      tally.bytes += item.bytes;
    }
    return tallies;
  }
}
