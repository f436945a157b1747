/**
 * The shards for which the other end of a link has chosen this cache as via. This cache sends it
 * only these shards, and it ignores an `end` unless both ends know the same claim.
 *
 * Bound: `shardsMax`, including shards that this cache does not know yet.
 */
import { compareClaims, type ClaimOrder } from '../../domain/claim.js';
import type { ShardName } from '../../domain/shard.js';
import { flows, type Neighbour } from '../../domain/via.js';
import type { FrameOf } from '../../frames/frame.js';
import type { PublishedState } from '../../domain/published-state.js';

const shardsMax = 100_000;

export class ChosenShards {
  readonly #known: Pick<PublishedState, 'shard'>;
  readonly #to: Neighbour;
  /** Undefined: the other end has sent its inventory of the shard, but no claim. */
  readonly #claims = new Map<ShardName, ClaimOrder | undefined>();

  constructor(known: Pick<PublishedState, 'shard'>, to: Neighbour, held: Iterable<ShardName>) {
    this.#known = known;
    this.#to = to;
    for (const shard of held) if (this.#claims.size < shardsMax) this.#claims.set(shard, undefined);
  }

  /** Returns false if the choice is the same as before. */
  learnChoice(claim: FrameOf<'claim'>): boolean {
    const { shard, term, removed, origin, isYours } = claim;
    const before = this.#claims.get(shard);
    if (!isYours) return this.#claims.delete(shard);
    if (before !== undefined && compareClaims(before, claim) === 0) return false;
    if (this.#claims.has(shard) || this.#claims.size < shardsMax) this.#claims.set(shard, { term, removed, origin });
    return true;
  }

  /** Nothing of a shard is sent back to the shard's via, whatever the other end believes. */
  has(shard: ShardName): boolean {
    return this.#claims.has(shard) && flows(this.#known.shard(shard)?.via, this.#to);
  }

  isAgreed(shard: ShardName): boolean {
    const [there, here] = [this.#claims.get(shard), this.#known.shard(shard)];
    return there !== undefined && here !== undefined && compareClaims(there, here) === 0;
  }
}
