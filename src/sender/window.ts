/**
 * What was sent in one connection and is not acknowledged.
 *
 *   sequence ── acknowledged ──┬── unacknowledged ──┬── next        V1 Mutations are numbered from 1 without a gap.
 *                              └ at most the credit ┘               V2 Beyond the credit nothing is sent; what alone is larger
 *                                                                      than its bytes is sent when nothing else is under way.
 *                                                                   V3 Nothing is forgotten before it is acknowledged or taken back.
 */
import type { Credit } from '../frames/frame.js';
import type { Pending } from './batch.js';

/** `isRefused`: the cache has refused it; its acknowledgement says that it was decided. */
export type Sent<Owner> = Readonly<{ owner: Owner; item: Pending }> & { isRefused: boolean };

/** What of one owner is not acknowledged, and when the oldest of it came from its source. */
export type Tally = Readonly<{ mutations: number; bytes: number; oldestMs: number }>;

export class Window<Owner> {
  #credit: Credit;
  #sent: Sent<Owner>[] = [];
  /** How many of each owner are not acknowledged. */
  readonly #owned = new Map<Owner, number>();
  #bytes = 0;
  #acknowledged = 0;

  constructor(credit: Credit) {
    this.#credit = credit;
  }

  get credit(): Credit {
    return this.#credit;
  }

  /** The last number that was acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  get unacknowledged(): Credit {
    return { mutations: this.#sent.length, bytes: this.#bytes };
  }

  /** Whether anything at all may be sent now. */
  get hasRoom(): boolean {
    return this.#sent.length < this.#credit.mutations && this.#bytes < this.#credit.bytes;
  }

  fits(mutations: number, bytes: number): boolean {
    if (!this.hasRoom || this.#sent.length + mutations > this.#credit.mutations) return false;
    return this.#sent.length === 0 || this.#bytes + bytes <= this.#credit.bytes;
  }

  /** Adds what is about to be sent in one frame; returns the number of the first. */
  add(owner: Owner, items: readonly Pending[]): number {
    const sequence = this.#acknowledged + this.#sent.length + 1;
    for (const item of items) {
      this.#sent.push({ owner, item, isRefused: false });
      this.#bytes += item.bytes;
    }
    this.#owned.set(owner, (this.#owned.get(owner) ?? 0) + items.length);
    return sequence;
  }

  /** What is acknowledged by this, in order. Undefined: the number was never sent. A number acknowledged before only updates the credit. */
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

  /** The mutation of that number, while it is not acknowledged. */
  find(sequence: number): Sent<Owner> | undefined {
    return this.#sent[sequence - this.#acknowledged - 1];
  }

  /** Whether anything of the owner is not acknowledged. */
  holds(owner: Owner): boolean {
    return this.#owned.has(owner);
  }

  /** Everything that is not acknowledged, by owner and in order; the window is empty then. */
  takeBack(): ReadonlyMap<Owner, readonly Pending[]> {
    const back = new Map<Owner, Pending[]>();
    for (const { owner, item } of this.#sent) {
      const items = back.get(owner);
      if (items === undefined) back.set(owner, [item]);
      else items.push(item);
    }
    this.#sent = [];
    this.#owned.clear();
    this.#bytes = 0;
    return back;
  }

  tally(): ReadonlyMap<Owner, Tally> {
    const tallies = new Map<Owner, { mutations: number; bytes: number; oldestMs: number }>();
    for (const { owner, item } of this.#sent) {
      const tally = tallies.get(owner);
      if (tally === undefined) tallies.set(owner, { mutations: 1, bytes: item.bytes, oldestMs: item.sinceMs });
      else {
        tally.mutations += 1;
        tally.bytes += item.bytes;
      }
    }
    return tallies;
  }
}
