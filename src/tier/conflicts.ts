/**
 * Two sides that claim a shard with one rank: the first stays, and an operator has something to look at until a later claim settles it.
 * Bound: one entry per shard.
 */
import { outranks, type Claim, type ShardState } from '../domain/claim.js';
import type { ShardName } from '../domain/shard.js';

export type Conflict = Readonly<{ claim: Claim; holder: ShardState; sinceMs: number }>;

export class Conflicts {
  readonly #byShard = new Map<ShardName, Conflict>();

  get all(): Iterable<Conflict> {
    return this.#byShard.values();
  }

  /** False: it is known. A peer may say it as often as it likes. */
  note(conflict: Conflict): boolean {
    const { shard } = conflict.claim;
    const known = this.#byShard.get(shard)?.claim;
    if (known !== undefined && isSame(known, conflict.claim)) return false;
    this.#byShard.set(shard, conflict);
    return true;
  }

  /** Something has changed of the shard. */
  settle(shard: ShardName): void {
    this.#byShard.delete(shard);
  }
}

function isSame(one: Claim, other: Claim): boolean {
  return one.side === other.side && !outranks(one, other) && !outranks(other, one);
}
