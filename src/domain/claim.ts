/**
 * Which of two claims has a shard, and by which neighbour it is reached. A claim says: the shard has its origin, where its writer is, at this
 * cache. Every cache decides by itself, with one order, so all end with the highest, whatever they heard and in whatever order.
 *
 *   order of claims: term, then removed before not, then the id of the origin
 *
 * The term is given by the cache to which a pusher comes, never by a pusher's own clock:
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
 *                                                      claims it again. A plain writer never does, so its shard stays, one term above
 *                                         else         the neighbour whose path does not lead through us: reached, then shorter, then as it was
 *   nobody reaches it                     it stays on its via; one without goes where a path begins at the origin; a neighbour that has it through us is none
 *
 * R1 The order of what a cache knows of a shard never falls. R2 Once links are up, all sides lead to the origin.
 */
import type { Term } from './push.js';
import type { ShardName } from './shard.js';
import type { Neighbour, Via } from './via.js';

/** What claims are ordered by. `origin`: the id of a cache. `removed`: the shard is to be nobody's, for all below. */
export type ClaimOrder = Readonly<{ term: Term; removed: boolean; origin: string }>;

/** `process`: the id of the pusher that the term was given to; '' for a plain writer and a removal. It orders nothing. */
export type Given = ClaimOrder & Readonly<{ process: string }>;

/** What a cache knows of a shard that anybody ever claimed, wrote to or removed. */
export type ShardState = Given &
  Readonly<{
    shard: ShardName;
    /** Undefined: nobody's, because it was removed, or because no neighbour reports on it any more. */
    via: Via | undefined;
    /** It is local, and written over plain HTTP by somebody who never claims. */
    plain: boolean;
  }>;

/** What followers are told of a shard once nothing is known of it any more. */
export function unknownShard(shard: ShardName): ShardState {
  return { shard, term: -1, process: '', removed: false, origin: '', via: undefined, plain: false };
}

export function isUnknown({ term }: Pick<ShardState, 'term'>): boolean {
  return term < 0;
}

/** That the shard be so, as this cache has chosen. */
export type Claim = ShardState;

/** A pusher comes. `term`: what it was given last, 0 when it was never given any. `nowMs`: milliseconds since 1970. */
export type Arrival = Readonly<{ shard: ShardName; process: string; term: Term; nowMs: number }>;

/** The last that an open link told of a shard. `path`: ids of caches, from the origin to the neighbour. */
export type Offer = Given & Readonly<{ path: readonly string[]; reached: boolean }>;

/** `path`: to the neighbour on whose side the shard is; empty where it is local, or not known. */
export type Choice = Readonly<{ state: ShardState; path: readonly string[]; reached: boolean }>;

export type Verdict = 'takes' | 'stands' | 'refused';

export function compareClaims(one: ClaimOrder, other: ClaimOrder): number {
  const difference = one.term - other.term || Number(one.removed) - Number(other.removed);
  return difference !== 0 ? difference : one.origin < other.origin ? -1 : one.origin > other.origin ? 1 : 0;
}

/** Clocks give nothing above this, the year 2109: there must be room above whatever a clock says. */
const clockMax = 2 ** 42;
/** What is named, by a pusher or a child, lies no further above what is known. */
const aboveKnownMax = 2 ** 20;

/** The highest term that anybody may name of a shard of which `known` is known; beyond it nobody could take the shard any more. */
export function termMax(known: ClaimOrder | undefined): Term {
  return Math.max(clockMax, known?.term ?? 0) + aboveKnownMax;
}

/** A term that nobody was given, above all that is known. */
export function nextTerm(known: ClaimOrder | undefined, nowMs = 0): Term {
  return Math.max(Math.min(nowMs, clockMax), (known?.term ?? 0) + 1);
}

/** What a pusher that comes to the cache `own` makes of the shard; undefined when it is fenced. The very state where it has the shard already. */
export function arrived(
  own: string,
  known: ShardState | undefined,
  { shard, process, term: named, nowMs }: Arrival,
): ShardState | undefined {
  const isSame = known !== undefined && known.process === process && !known.removed;
  if (isSame && known.via === 'local' && named <= known.term) return known;
  const isFenced = !isSame && named !== 0 && known !== undefined && named <= known.term;
  if (isFenced || named > termMax(known)) return undefined;
  const term = Math.max(nextTerm(known, isSame || named !== 0 ? 0 : nowMs), named + 1);
  return { shard, term, process, removed: false, origin: own, via: 'local', plain: false };
}

/** What the claim comes to where `known` is known; for the committer, which hears of both in their order. */
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

/** What a plain write at the cache `own` makes of a shard that is not local there: nobody gives a plain writer anything. */
export function writtenPlainly(own: string, known: ShardState | undefined, shard: ShardName): ShardState {
  return { shard, term: nextTerm(known), process: '', removed: false, origin: own, via: 'local', plain: true };
}

/** What its removal at the cache `own` makes of a shard. */
export function removedAt(own: string, known: ShardState | undefined, { shard, nowMs }: Pick<Arrival, 'shard' | 'nowMs'>): ShardState {
  return { shard, term: nextTerm(known, nowMs), process: '', removed: true, origin: own, via: undefined, plain: false };
}

/** The link that a shard is to be had by whose origin is elsewhere: what is nobody's came by the parent that was. */
export function wayTo({ via }: ShardState): Neighbour {
  return via === undefined || via === 'local' ? 'parent' : via;
}

/** Whether its origin is another cache than this one, as far as is known here. */
export function isElsewhere(known: ShardState | undefined, own: string): boolean {
  return known !== undefined && !known.removed && known.via !== 'local' && known.origin !== own;
}

/** `highest`: of all that was ever heard. Undefined when nothing is known of the shard. */
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
    const [neighbour, { path, reached }] = first;
    return { state: { ...nobodys.state, via: neighbour }, path, reached };
  }
  if (isHigher || known === undefined || viaNow === undefined || viaNow === 'local') return nobodys;
  const back = offers.get(viaNow);
  if (back !== undefined && compareClaims(back, best) === 0 && back.path.includes(own)) return nobodys;
  return { ...known, reached: false };
}

/** A claim of this very cache that it does not remember: its disk is older. */
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
