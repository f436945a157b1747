/**
 * Which of two claims has a shard, and by which neighbour it is reached. A claim says: the shard has its origin, where its writer is, at this
 * cache. Every cache decides by itself, with one order, so all end with the highest, whatever they heard and in whatever order.
 *
 *   order of claims: incarnation, then moves, then removed before not, then the id of the origin
 *
 * A process that comes to another cache makes one move: it is known to live where it was, and is newer here. A claim travels with its path,
 * the caches it came by. Each keeps the last claim that every open link told, and chooses:
 *
 *   the highest known                     is removed   the shard is nobody's
 *                                         is our own   it stays local; what we do not remember was lost with our disk: nobody's until its writer
 *                                                      claims it again. A plain writer never does, so its shard stays, one incarnation above
 *                                         else         the neighbour whose path does not lead through us: reached, then shorter, then as it was
 *   nobody reaches it                     it stays on its side; one without goes where a path begins at the origin; a side that has it through us is none
 *
 * R1 The order of what a cache knows of a shard never falls. R2 Once links are up, all sides lead to the origin.
 */
import type { Incarnation } from './push.js';
import type { ShardName } from './shard.js';
import type { LinkSide, Side } from './side.js';

export type Rank = Readonly<{ incarnation: Incarnation; moves: number }>;

/** What claims are ordered by. `origin`: the id of a cache. `removed`: the shard is to be nobody's, for all below. */
export type ClaimOrder = Rank & Readonly<{ removed: boolean; origin: string }>;

/** What a cache knows of a shard that anybody ever claimed, wrote to or removed. */
export type ShardState = ClaimOrder &
  Readonly<{
    shard: ShardName;
    /** Undefined: nobody's, because it was removed, or because no neighbour tells of it any more. */
    side: Side | undefined;
    /** It is local, and written over plain HTTP by somebody who never claims. */
    plain: boolean;
  }>;

/** What followers are told of a shard once nothing is known of it any more. */
export function unknownShard(shard: ShardName): ShardState {
  return { shard, incarnation: -1, moves: 0, removed: false, origin: '', side: undefined, plain: false };
}

export function isUnknown({ incarnation }: Pick<ShardState, 'incarnation'>): boolean {
  return incarnation < 0;
}

/** That the shard be so. Of a pusher's the moves are counted here. */
export type Claim = ShardState;

/** The last that an open link told of a shard. `path`: ids of caches, from the origin to the neighbour. */
export type Offer = ClaimOrder & Readonly<{ path: readonly string[]; reached: boolean }>;

/** `path`: to the neighbour on whose side the shard is; empty where it is local, or not known. */
export type Choice = Readonly<{ state: ShardState; path: readonly string[]; reached: boolean }>;

export type Verdict = 'takes' | 'stands' | 'refused';

export function compareClaims(one: ClaimOrder, other: ClaimOrder): number {
  const difference = one.incarnation - other.incarnation || one.moves - other.moves || Number(one.removed) - Number(other.removed);
  return difference !== 0 ? difference : one.origin < other.origin ? -1 : one.origin > other.origin ? 1 : 0;
}

/** What the claim comes to where `known` is known; for the committer, which hears of both in their order. */
export function judgeClaim(known: ShardState | undefined, claim: Claim): Verdict {
  if (isPushers(claim)) return judgePusher(known, claim);
  if (claim.side === 'local' && known?.plain !== true) return 'refused';
  const order = known === undefined ? 1 : compareClaims(claim, known);
  if (order !== 0) return order > 0 ? 'takes' : 'refused';
  if (claim.removed || known?.side === claim.side) return 'stands';
  return known?.side === 'local' ? 'refused' : 'takes';
}

/** What is known once the claim takes the shard, of which `known` was before. */
export function claimed(claim: Claim, known: ShardState | undefined): ShardState {
  const { shard, incarnation, removed, origin, side, plain } = claim;
  return { shard, incarnation, moves: movesOf(claim, known), removed, origin, side: removed ? undefined : side, plain: plain && !removed };
}

function movesOf(claim: Claim, known: ShardState | undefined): number {
  if (!isPushers(claim)) return claim.moves;
  if (known === undefined || known.incarnation !== claim.incarnation) return 0;
  return known.moves + (known.origin === claim.origin ? 0 : 1);
}

/** Whether its origin is another cache than this one, as far as is known here. */
export function isElsewhere(known: ShardState | undefined, own: string): boolean {
  return known !== undefined && !known.removed && known.side !== 'local' && known.origin !== own;
}

function isPushers({ side, plain, removed }: Claim): boolean {
  return side === 'local' && !plain && !removed;
}

/** By the process alone: of one that is known elsewhere the cache that it has come to knows best. */
function judgePusher(known: ShardState | undefined, { incarnation }: Claim): Verdict {
  if (known === undefined || incarnation > known.incarnation) return 'takes';
  if (incarnation < known.incarnation || known.removed) return 'refused';
  return known.side === 'local' ? 'stands' : 'takes';
}

/** `highest`: of all that was ever heard. Undefined when nothing is known of the shard. */
export function choose(
  own: string,
  known: Choice | undefined,
  { shard, highest, offers }: Readonly<{ shard: ShardName; highest: ClaimOrder | undefined; offers: ReadonlyMap<LinkSide, Offer> }>,
): Choice | undefined {
  const isHigher = highest !== undefined && (known === undefined || compareClaims(highest, known.state) > 0);
  const best = isHigher ? highest : known?.state;
  if (best === undefined) return undefined;
  const { incarnation, moves, removed, origin } = best;
  const nobodys: Choice = {
    state: { shard, incarnation, moves, removed, origin, side: undefined, plain: false },
    path: [],
    reached: false,
  };
  if (removed) return nobodys;
  if (origin === own) return isHigher ? ownAgain(nobodys, known) : known;

  const through = [...offers].filter(([, offer]) => compareClaims(offer, best) === 0 && !offer.path.includes(own));
  const sideNow = known?.state.side;
  const reaching = through
    .filter(([, { reached }]) => reached)
    .toSorted(([one, a], [other, b]) => a.path.length - b.path.length || preference(one, other, sideNow));
  const unreached = isHigher ? through : sideNow === undefined ? through.filter(([, { path }]) => path[0] === best.origin) : [];
  const [first] = reaching.length > 0 ? reaching : unreached;
  if (first !== undefined) {
    const [side, { path, reached }] = first;
    return { state: { ...nobodys.state, side }, path, reached };
  }
  if (isHigher || known === undefined || sideNow === undefined || sideNow === 'local') return nobodys;
  const back = offers.get(sideNow);
  if (back !== undefined && compareClaims(back, best) === 0 && back.path.includes(own)) return nobodys;
  return { ...known, reached: false };
}

/** A claim of this very cache that it does not remember: its disk is older. */
function ownAgain(nobodys: Choice, known: Choice | undefined): Choice {
  if (known?.state.side !== 'local' || !known.state.plain) return nobodys;
  const { incarnation } = nobodys.state;
  return { state: { ...nobodys.state, incarnation: incarnation + 1, moves: 0, side: 'local', plain: true }, path: [], reached: true };
}

function preference(one: LinkSide, other: LinkSide, now: Side | undefined): number {
  if (one === now) return -1;
  if (other === now) return 1;
  return one < other ? -1 : 1;
}
