/**
 * Which of two claims has a shard, and by which neighbour its origin is reached. A claim says: the shard has its origin, where its writer is, at
 * this cache. Every cache decides by itself, with one order, so all end with the highest, whatever they received and in whatever order.
 *
 *   order of claims: term, then removed before not, then the id of the origin
 *
 * The cache that a pusher comes to gives it its term; a pusher's own clock never does:
 *
 *   the process                                       gets
 *   comes for the first time                          one above every known term, or the cache's clock if that is higher
 *   has the shard here                                what it has
 *   has it at another cache, or names a term above    one above every term that is known or named: it is here now
 *   every known one
 *   anything else                                     nothing: it is fenced, because another came after it
 *
 * A claim travels with its path, the caches it came by. Each cache keeps the last claim of every open link, and chooses:
 *
 *   the highest known                     is removed   the shard is nobody's
 *                                         is our own   it stays local; what we do not remember was lost with our disk: nobody's until its writer
 *                                                      claims it again. A plain writer never does, so its shard stays, one term above
 *                                         else         a neighbour whose path does not lead through us: reached, then shorter, then as it was
 *   no path is reached                    the via stays; without a via, a neighbour whose path begins at the origin; never one that has it through us
 *
 * R1 The order of what a cache knows of a shard never falls. R2 Once links are up, every via leads to the origin.
 */
import type { Term } from './push.js';
import type { ShardName } from './shard.js';
import type { Neighbour, Via } from './via.js';

/** What claims are ordered by. `origin`: the id of a cache. `removed`: the shard is nobody's, in the whole tree. */
export type ClaimOrder = Readonly<{ term: Term; removed: boolean; origin: string }>;

/** `process`: the id of the pusher that the term was given to; '' for a plain writer and a removal. It orders nothing. */
export type Given = ClaimOrder & Readonly<{ process: string }>;

/** What a cache knows of a shard that anybody ever claimed, wrote to or removed. */
export type ShardState = Given &
  Readonly<{
    shard: ShardName;
    /** Undefined: nobody's, because it was removed, or because no neighbour claims it any more. */
    via: Via | undefined;
    /** It is local, and written over plain HTTP by somebody who never claims. */
    plain: boolean;
  }>;

/** Whether nobody claims it, because it is written over plain HTTP: here, or at its origin, whose claim names no process. */
export function isWrittenPlainly({ plain, process, removed }: Pick<ShardState, 'plain' | 'process' | 'removed'>): boolean {
  return plain || (process === '' && !removed);
}

/** What followers receive of a shard that is forgotten. */
export function unknownShard(shard: ShardName): ShardState {
  return { shard, term: -1, process: '', removed: false, origin: '', via: undefined, plain: false };
}

export function isUnknown({ term }: Pick<ShardState, 'term'>): boolean {
  return term < 0;
}

/** A choice of this cache, for the committer to take or refuse. */
export type Claim = ShardState;

/** A pusher comes. `term`: the last it was given, 0 when it never was. `nowMs`: milliseconds since 1970. */
export type Arrival = Readonly<{ shard: ShardName; process: string; term: Term; nowMs: number }>;

/** The last claim of an open link. `path`: ids of caches, from the origin to the neighbour. `held`: a pusher is at the origin, and may keep the shard. */
export type Offer = Given & Readonly<{ path: readonly string[]; reached: boolean; held: boolean }>;

/** `path`: from the origin to the neighbour that the shard comes from; empty where it is local, or not known. */
export type Choice = Readonly<{ state: ShardState; path: readonly string[]; reached: boolean; held: boolean }>;

export type Verdict = 'takes' | 'stands' | 'refused';

export function compareClaims(one: ClaimOrder, other: ClaimOrder): number {
  const difference = one.term - other.term || Number(one.removed) - Number(other.removed);
  return difference !== 0 ? difference : one.origin < other.origin ? -1 : one.origin > other.origin ? 1 : 0;
}

/** A clock gives no higher term, the year 2109: there must be room above whatever a clock says. */
const clockMax = 2 ** 42;
/** A term that a pusher or a child names lies at most this far above what is known. */
const aboveKnownMax = 2 ** 20;

/** The highest term that anybody may name of a shard; beyond it nobody could take the shard any more. */
export function termMax(known: ClaimOrder | undefined): Term {
  return Math.max(clockMax, known?.term ?? 0) + aboveKnownMax;
}

/** A term that nobody was given, above every known one. */
export function nextTerm(known: ClaimOrder | undefined, nowMs = 0): Term {
  return Math.max(Math.min(nowMs, clockMax), (known?.term ?? 0) + 1);
}

/** The shard's state once a pusher comes to the cache `own`; undefined when it is fenced. `known` itself where the pusher has the shard already. */
export function arrived(
  own: string,
  known: ShardState | undefined,
  { shard, process, term: named, nowMs }: Arrival,
): ShardState | undefined {
  const isLater = known !== undefined && named > known.term;
  const isKnown = known !== undefined && known.process === process;
  const isSame = isKnown && !known.removed;
  if (isSame && known.via === 'local' && !isLater) return known;
  // A process whose welcome was lost names nothing, and is fenced by the removal of its shard all the same.
  const isFenced = known !== undefined && !isSame && !isLater && (named !== 0 || (isKnown && process !== ''));
  if (isFenced || named > termMax(known)) return undefined;
  const term = Math.max(nextTerm(known, isSame || named !== 0 ? 0 : nowMs), named + 1);
  return { shard, term, process, removed: false, origin: own, via: 'local', plain: false };
}

/** What becomes of a claim where `known` is known. For the committer, which receives claims and writes in one order. */
export function judgeClaim(known: ShardState | undefined, claim: Claim): Verdict {
  if (claim.via === 'local' && known?.plain !== true) return 'refused';
  const order = known === undefined ? 1 : compareClaims(claim, known);
  if (order !== 0) return order > 0 ? 'takes' : 'refused';
  if (claim.removed || known?.via === claim.via) return 'stands';
  return known?.via === 'local' ? 'refused' : 'takes';
}

/** What is known once the claim takes the shard. */
export function claimed({ shard, term, process, removed, origin, via, plain }: Claim): ShardState {
  return { shard, term, process, removed, origin, via: removed ? undefined : via, plain: plain && !removed };
}

/** The state after a plain write, at the cache `own`, to a shard that is not local there: nobody gives a plain writer a term. */
export function writtenPlainly(own: string, known: ShardState | undefined, shard: ShardName): ShardState {
  return { shard, term: nextTerm(known), process: '', removed: false, origin: own, via: 'local', plain: true };
}

/** The state after a removal at the cache `own`. The process that had the shard is remembered: it does not bring the shard back. */
export function removedAt(own: string, known: ShardState | undefined, { shard, nowMs }: Pick<Arrival, 'shard' | 'nowMs'>): ShardState {
  return { shard, term: nextTerm(known, nowMs), process: known?.process ?? '', removed: true, origin: own, via: undefined, plain: false };
}

/** The link to a shard whose origin is elsewhere: a shard that is nobody's came by the former parent. */
export function wayTo({ via }: ShardState): Neighbour {
  return via === undefined || via === 'local' ? 'parent' : via;
}

/** Whether its origin is another cache than this one, as far as is known here. */
export function isElsewhere(known: ShardState | undefined, own: string): boolean {
  return known !== undefined && !known.removed && known.via !== 'local' && known.origin !== own;
}

/** `highest`: of all claims ever received. Undefined when nothing is known of the shard. */
export function choose(
  own: string,
  known: Choice | undefined,
  { shard, highest, offers }: Readonly<{ shard: ShardName; highest: Given | undefined; offers: ReadonlyMap<Neighbour, Offer> }>,
): Choice | undefined {
  const isHigher = highest !== undefined && (known === undefined || compareClaims(highest, known.state) > 0);
  const best = isHigher ? highest : known?.state;
  if (best === undefined) return undefined;
  const { term, process, removed, origin } = best;
  const nobodys: Choice = {
    state: { shard, term, process, removed, origin, via: undefined, plain: false },
    path: [],
    reached: false,
    held: false,
  };
  if (removed) return nobodys;
  if (origin === own) return isHigher ? ownAgain(nobodys, known) : known;

  const through = [...offers].filter(([, offer]) => compareClaims(offer, best) === 0 && !offer.path.includes(own));
  const viaNow = known?.state.via;
  const reaching = through
    .filter(([, { reached }]) => reached)
    .toSorted(([one, a], [other, b]) => a.path.length - b.path.length || preference(one, other, viaNow));
  const unreached = isHigher ? through : viaNow === undefined ? through.filter(([, { path }]) => path[0] === best.origin) : [];
  const [first] = reaching.length > 0 ? reaching : unreached;
  if (first !== undefined) {
    const [neighbour, { path, reached, held }] = first;
    return { state: { ...nobodys.state, via: neighbour }, path, reached, held };
  }
  if (isHigher || known === undefined || viaNow === undefined || viaNow === 'local') return nobodys;
  const back = offers.get(viaNow);
  if (back !== undefined && compareClaims(back, best) === 0 && back.path.includes(own)) return nobodys;
  return { ...known, reached: false };
}

/** A claim of this very cache that it does not remember, because its disk is older. */
function ownAgain(nobodys: Choice, known: Choice | undefined): Choice {
  if (known?.state.via !== 'local' || !known.state.plain) return nobodys;
  const state: ShardState = { ...nobodys.state, term: nextTerm(nobodys.state), process: '', via: 'local', plain: true };
  return { ...nobodys, state, reached: true };
}

function preference(one: Neighbour, other: Neighbour, now: Via | undefined): number {
  if (one === now) return -1;
  if (other === now) return 1;
  return one < other ? -1 : 1;
}
