/**
 * Which of two claims has a shard, and by which neighbour it is reached. A claim says: the shard has its origin, where its writer is, at this
 * cache. Every cache decides by itself, with one order, so all end with the highest, whatever they heard and in whatever order.
 *
 *   order of claims: incarnation, then removed before not, then the id of the origin
 *
 * The incarnation is given by the cache to which a pusher comes, never by a pusher's own clock:
 *
 *   the process                                       is given
 *   comes for the first time                          one above all that is known, or the cache's clock if that is higher
 *   has the shard here                                what it has
 *   has it at another cache, or names one above       one above all that is known or named: it is here now
 *   all that is known
 *   anything else                                     nothing: it is fenced, by whoever came after it
 *
 * A claim travels with its path, the caches it came by. Each keeps the last claim that every open link told, and chooses:
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

/** What claims are ordered by. `origin`: the id of a cache. `removed`: the shard is to be nobody's, for all below. */
export type ClaimOrder = Readonly<{ incarnation: Incarnation; removed: boolean; origin: string }>;

/** `process`: the id of the pusher that the incarnation was given to; '' for a plain writer and a removal. It orders nothing. */
export type Given = ClaimOrder & Readonly<{ process: string }>;

/** What a cache knows of a shard that anybody ever claimed, wrote to or removed. */
export type ShardState = Given &
  Readonly<{
    shard: ShardName;
    /** Undefined: nobody's, because it was removed, or because no neighbour tells of it any more. */
    side: Side | undefined;
    /** It is local, and written over plain HTTP by somebody who never claims. */
    plain: boolean;
  }>;

/** What followers are told of a shard once nothing is known of it any more. */
export function unknownShard(shard: ShardName): ShardState {
  return { shard, incarnation: -1, process: '', removed: false, origin: '', side: undefined, plain: false };
}

export function isUnknown({ incarnation }: Pick<ShardState, 'incarnation'>): boolean {
  return incarnation < 0;
}

/** That the shard be so, as this cache has chosen. */
export type Claim = ShardState;

/** A pusher comes. `incarnation`: what it was given last, 0 when it was never given any. `nowMs`: milliseconds since 1970. */
export type Arrival = Readonly<{ shard: ShardName; process: string; incarnation: Incarnation; nowMs: number }>;

/** The last that an open link told of a shard. `path`: ids of caches, from the origin to the neighbour. */
export type Offer = Given & Readonly<{ path: readonly string[]; reached: boolean }>;

/** `path`: to the neighbour on whose side the shard is; empty where it is local, or not known. */
export type Choice = Readonly<{ state: ShardState; path: readonly string[]; reached: boolean }>;

export type Verdict = 'takes' | 'stands' | 'refused';

export function compareClaims(one: ClaimOrder, other: ClaimOrder): number {
  const difference = one.incarnation - other.incarnation || Number(one.removed) - Number(other.removed);
  return difference !== 0 ? difference : one.origin < other.origin ? -1 : one.origin > other.origin ? 1 : 0;
}

/** Clocks give nothing above this, the year 2109: there must be room above whatever a clock says. */
const clockMax = 2 ** 42;
/** What is named, by a pusher or a child, lies no further above what is known. */
const aboveKnownMax = 2 ** 20;

/** The highest incarnation that anybody may name of a shard of which `known` is known; beyond it nobody could take the shard any more. */
export function incarnationMax(known: ClaimOrder | undefined): Incarnation {
  return Math.max(clockMax, known?.incarnation ?? 0) + aboveKnownMax;
}

/** An incarnation that nobody was given, above all that is known. */
export function nextIncarnation(known: ClaimOrder | undefined, nowMs = 0): Incarnation {
  return Math.max(Math.min(nowMs, clockMax), (known?.incarnation ?? 0) + 1);
}

/** What a pusher that comes to the cache `own` makes of the shard; undefined when it is fenced. The very state where it has the shard already. */
export function arrived(
  own: string,
  known: ShardState | undefined,
  { shard, process, incarnation: named, nowMs }: Arrival,
): ShardState | undefined {
  const isSame = known !== undefined && known.process === process && !known.removed;
  if (isSame && known.side === 'local' && named <= known.incarnation) return known;
  const isFenced = !isSame && named !== 0 && known !== undefined && named <= known.incarnation;
  if (isFenced || named > incarnationMax(known)) return undefined;
  const incarnation = Math.max(nextIncarnation(known, isSame || named !== 0 ? 0 : nowMs), named + 1);
  return { shard, incarnation, process, removed: false, origin: own, side: 'local', plain: false };
}

/** What the claim comes to where `known` is known; for the committer, which hears of both in their order. */
export function judgeClaim(known: ShardState | undefined, claim: Claim): Verdict {
  if (claim.side === 'local' && known?.plain !== true) return 'refused';
  const order = known === undefined ? 1 : compareClaims(claim, known);
  if (order !== 0) return order > 0 ? 'takes' : 'refused';
  if (claim.removed || known?.side === claim.side) return 'stands';
  return known?.side === 'local' ? 'refused' : 'takes';
}

/** What is known once the claim takes the shard. */
export function claimed({ shard, incarnation, process, removed, origin, side, plain }: Claim): ShardState {
  return { shard, incarnation, process, removed, origin, side: removed ? undefined : side, plain: plain && !removed };
}

/** What a plain write at the cache `own` makes of a shard that is not local there: nobody gives a plain writer anything. */
export function writtenPlainly(own: string, known: ShardState | undefined, shard: ShardName): ShardState {
  return { shard, incarnation: nextIncarnation(known), process: '', removed: false, origin: own, side: 'local', plain: true };
}

/** What its removal at the cache `own` makes of a shard. */
export function removedAt(own: string, known: ShardState | undefined, { shard, nowMs }: Pick<Arrival, 'shard' | 'nowMs'>): ShardState {
  return { shard, incarnation: nextIncarnation(known, nowMs), process: '', removed: true, origin: own, side: undefined, plain: false };
}

/** The link that a shard is to be had by whose origin is elsewhere: what is nobody's came by the parent that was. */
export function wayTo({ side }: ShardState): LinkSide {
  return side === undefined || side === 'local' ? 'parent' : side;
}

/** Whether its origin is another cache than this one, as far as is known here. */
export function isElsewhere(known: ShardState | undefined, own: string): boolean {
  return known !== undefined && !known.removed && known.side !== 'local' && known.origin !== own;
}

/** `highest`: of all that was ever heard. Undefined when nothing is known of the shard. */
export function choose(
  own: string,
  known: Choice | undefined,
  { shard, highest, offers }: Readonly<{ shard: ShardName; highest: Given | undefined; offers: ReadonlyMap<LinkSide, Offer> }>,
): Choice | undefined {
  const isHigher = highest !== undefined && (known === undefined || compareClaims(highest, known.state) > 0);
  const best = isHigher ? highest : known?.state;
  if (best === undefined) return undefined;
  const { incarnation, process, removed, origin } = best;
  const nobodys: Choice = {
    state: { shard, incarnation, process, removed, origin, side: undefined, plain: false },
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
  const state: ShardState = { ...nobodys.state, incarnation: nextIncarnation(nobodys.state), process: '', side: 'local', plain: true };
  return { ...nobodys, state, reached: true };
}

function preference(one: LinkSide, other: LinkSide, now: Side | undefined): number {
  if (one === now) return -1;
  if (other === now) return 1;
  return one < other ? -1 : 1;
}
