/**
 * Which of two claims has a shard. Claims travel through the tree: every cache judges them by itself, with the same rule, so that
 * all end with the highest, whatever way and in whatever order they heard of it.
 *
 *   known              claim, higher    claim, equal           claim, lower
 *   nothing            takes            takes                  takes
 *   the same side      takes            stands                 stands, unless it is a pusher's: the number does not fall
 *   another side       takes            refused: a conflict    refused
 *   removed            takes            refused                refused
 *
 * A link whose cache lost its memory of a number is still the same side, hence the lower claim that stands.
 */
import type { Incarnation } from './push.js';
import type { ShardName } from './shard.js';
import type { Side } from './side.js';

/**
 * Claims are ordered by incarnation, then by moves: how often a cache on the way has changed its parent since, so that what it
 * brings along is newer than what it left behind.
 */
export type Rank = Readonly<{ incarnation: Incarnation; moves: number }>;

/** What a cache knows of a shard that anybody ever claimed, wrote to or removed. */
export type ShardState = Rank &
  Readonly<{
    shard: ShardName;
    /** Undefined: nobody's, because it was removed. */
    side: Side | undefined;
    /** Its processes up to this incarnation stay out. */
    removed: boolean;
    /** It is local, and written over plain HTTP by somebody who never claims. */
    plain: boolean;
  }>;

/** `removed`: the shard is to be nobody's, for all up to this rank. */
export type Claim = Rank & Readonly<{ shard: ShardName; side: Side; removed: boolean }>;

export type Verdict = 'takes' | 'stands' | 'refused';

export function judgeClaim(known: ShardState | undefined, claim: Claim): Verdict {
  if (known === undefined || outranks(claim, known)) return 'takes';
  if (claim.removed) return known.removed && !outranks(known, claim) ? 'stands' : 'refused';
  if (known.removed || known.side !== claim.side) return 'refused';
  if (claim.side !== 'local') return 'stands';
  return claim.incarnation === known.incarnation ? 'stands' : 'refused';
}

/** What is known once the claim takes the shard. */
export function claimed({ shard, side, incarnation, moves, removed }: Claim): ShardState {
  return { shard, incarnation, moves, removed, side: removed ? undefined : side, plain: false };
}

export function outranks(one: Rank, other: Rank): boolean {
  return one.incarnation === other.incarnation ? one.moves > other.moves : one.incarnation > other.incarnation;
}
