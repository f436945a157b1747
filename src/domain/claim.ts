/**
 * Which of two claims has a shard. Claims travel through the tree: every cache judges them by itself, with the same rule, so that
 * all end with the highest, whatever way and in whatever order they heard of it.
 *
 *   known              claim, higher                          claim, equal           claim, lower
 *   nothing            takes                                  takes                  takes
 *   the same side      takes                                  stands                 stands, unless it is a pusher's: the number does not fall
 *   another side       takes; refused where only moved since  refused: a conflict    refused
 *                      from a pusher that is here
 *   removed            takes                                  refused                refused
 *
 * A link whose cache lost its memory of a number is still the same side, hence the lower claim that stands.
 *
 * A pusher is at one cache. What a link says of its incarnation there is an echo of an earlier way to this very cache, whatever has
 * moved since: it is refused, and `raised` above, so that all caches leave that way for the one there is now.
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

const raisesMax = 256;

export function judgeClaim(known: ShardState | undefined, claim: Claim): Verdict {
  if (known === undefined) return 'takes';
  if (isEcho(known, claim)) return 'refused';
  if (outranks(claim, known)) return 'takes';
  if (claim.removed) return known.removed && !outranks(known, claim) ? 'stands' : 'refused';
  if (known.removed || known.side !== claim.side) return 'refused';
  if (claim.side !== 'local') return 'stands';
  return claim.incarnation === known.incarnation ? 'stands' : 'refused';
}

/** What is known once the claim takes the shard, of which `known` was before. A plain writer's that was raised stays one. */
export function claimed({ shard, side, incarnation, moves, removed }: Claim, known?: ShardState): ShardState {
  const plain = side === 'local' && known?.side === 'local' && known.plain && known.incarnation === incarnation && !removed;
  return { shard, incarnation, moves, removed, side: removed ? undefined : side, plain };
}

/**
 * The claim with which a cache answers one that it refused, if the shard is at home here and the other was an echo. Two caches that both
 * have it would answer each other for ever, hence the bound: it stays a conflict then.
 */
export function raised(holder: ShardState, refused: Claim): Claim | undefined {
  if (!isEcho(holder, refused) || outranks(holder, refused) || refused.moves >= raisesMax) return undefined;
  const { shard, incarnation } = holder;
  return { shard, incarnation, moves: refused.moves + 1, side: 'local', removed: false };
}

function isEcho(known: ShardState, { side, incarnation, removed }: Claim): boolean {
  return known.side === 'local' && side !== 'local' && !removed && known.incarnation === incarnation;
}

export function outranks(one: Rank, other: Rank): boolean {
  return one.incarnation === other.incarnation ? one.moves > other.moves : one.incarnation > other.incarnation;
}
