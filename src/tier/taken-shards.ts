/**
 * Which shards the other end of a link has from here, as it has sent: only these are sent to it. The claim that it knows decides whether an
 * `end` would count. Bound: `shardsMax`, known here or not yet.
 */
import { compareClaims, type ClaimOrder } from '../domain/claim.js';
import type { ShardName } from '../domain/shard.js';
import { flows, type Neighbour } from '../domain/via.js';
import type { FrameOf } from '../frames/frame.js';
import type { PublishedState } from '../domain/published-state.js';

const shardsMax = 100_000;

export class TakenShards {
  readonly #known: Pick<PublishedState, 'shard'>;
  readonly #to: Neighbour;
  /** No claim: it has only reported that it holds something of the shard. */
  readonly #claims = new Map<ShardName, ClaimOrder | undefined>();

  constructor(known: Pick<PublishedState, 'shard'>, to: Neighbour, held: Iterable<ShardName>) {
    this.#known = known;
    this.#to = to;
    for (const shard of held) if (this.#claims.size < shardsMax) this.#claims.set(shard, undefined);
  }

  /** False: it has chosen as before. */
  learnChoice(claim: FrameOf<'claim'>): boolean {
    const { shard, term, removed, origin, isYours } = claim;
    const before = this.#claims.get(shard);
    if (!isYours) return this.#claims.delete(shard);
    if (before !== undefined && compareClaims(before, claim) === 0) return false;
    if (this.#claims.size < shardsMax) this.#claims.set(shard, { term, removed, origin });
    return true;
  }

  /** Nothing goes back to its via, whatever the other end still believes. */
  has(shard: ShardName): boolean {
    return this.#claims.has(shard) && flows(this.#known.shard(shard)?.via, this.#to);
  }

  /** Whether both ends know of the same claim. */
  isAgreed(shard: ShardName): boolean {
    const [there, here] = [this.#claims.get(shard), this.#known.shard(shard)];
    return there !== undefined && here !== undefined && compareClaims(there, here) === 0;
  }
}
