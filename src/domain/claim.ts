/**
 * Decides which of two claims wins a shard, and through which neighbour a cache reaches the shard's
 * origin. A claim names a shard's origin: the cache to which the shard's writer connects. Every
 * cache decides for itself, with one total order. So all caches end with the highest claim,
 * whatever the order in which claims arrived.
 *
 *  order of claims: by term, then removed above not removed, then by the id of the origin
 *
 * The cache that a pusher connects to gives the pusher its term. The term never depends on the
 * pusher's clock:
 *
 *  the process                                   gets
 *  connects for the first time                   one above every known term, or the cache's clock
 *                                                in ms if that is higher
 *  has the shard at this cache                   the term that it has
 *  has it at another cache, or names a term      one above every term that is known or named: the
 *  above every known one                         shard's origin is this cache from then on
 *  anything else                                 nothing: it is shut out, because another process
 *                                                took the shard after it
 *
 * A claim carries its path, the caches that forwarded it. A path is reached while all its links are
 * open. Each cache keeps the last claim of every open link, and chooses:
 *
 *  the highest known claim    choice
 *  is a removal               nobody has the shard
 *  names this cache           the shard stays local. If this cache lost the claim with its disk,
 *                             nobody has the shard until its writer claims it again. A plain writer
 *                             never claims: its shard stays local, one term higher
 *  names another cache        a neighbour whose path does not contain this cache. The cache prefers
 *                             a reached path, then the shorter one, then the present via
 *  came by no reached path    if the claim is new, any such neighbour. Otherwise the via stays;
 *                             without a via: such a neighbour whose path begins at the origin
 *
 * R1 The highest claim that a cache knows of a shard is never replaced by a lower one.
 * R2 Once links are up, every via leads to the origin.
 */
import type { Term } from './push.js';
import type { ShardName } from './shard.js';
import { compareTexts } from './syntax/version-order.js';
import type { Neighbour, Via } from './via.js';

/**
 * The members that order claims. `origin`: the id of a cache. `removed`: no cache of the tree has
 * the shard.
 */
export type ClaimOrder = Readonly<{ term: Term; removed: boolean; origin: string }>;

/**
 * `process`: the id of the pusher that got the term; '' for a plain writer and for a removal
 * without a former pusher. It does not affect the order of claims.
 */
export type GrantedTerm = ClaimOrder & Readonly<{ process: string }>;

/** What a cache knows of a shard that anybody ever claimed, wrote to or removed. */
export type ShardState = GrantedTerm &
  Readonly<{
    shard: ShardName;
    /** Undefined: nobody has the shard, because it was removed or no neighbour claims it. */
    via: Via | undefined;
    /** The shard is local, and its writer uses plain HTTP and never claims. */
    plain: boolean;
  }>;

/** True if the shard is plain at this cache, or if its origin's claim names no process. */
export function isWrittenPlainly({ plain, process, removed }: Pick<ShardState, 'plain' | 'process' | 'removed'>): boolean {
  return plain || (process === '' && !removed);
}

export function unknownShard(shard: ShardName): ShardState {
  return { shard, term: -1, process: '', removed: false, origin: '', via: undefined, plain: false };
}

export function isUnknown({ term }: Pick<ShardState, 'term'>): boolean {
  return term < 0;
}

/** The state that this cache has chosen for a shard; the committer accepts or refuses it. */
export type Claim = ShardState;

/**
 * A pusher connects. `term`: the last term that the pusher was given, 0 if none. `nowMs`:
 * milliseconds since 1970.
 */
export type Arrival = Readonly<{ shard: ShardName; process: string; term: Term; nowMs: number }>;

/**
 * The last claim of an open link. `path`: ids of caches, from the origin to the neighbour. `held`:
 * the origin has a pusher that may keep the shard, so no other pusher gets it.
 */
export type Offer = GrantedTerm & Readonly<{ path: readonly string[]; reached: boolean; held: boolean }>;

/** `path`: from the origin to the via; empty if the shard is local or its origin is not known. */
export type Choice = Readonly<{ state: ShardState; path: readonly string[]; reached: boolean; held: boolean }>;

export type Verdict = 'takes' | 'stands' | 'refused';

export function compareClaims(one: ClaimOrder, other: ClaimOrder): number {
  return one.term - other.term || Number(one.removed) - Number(other.removed) || compareTexts(one.origin, other.origin);
}

/**
 * The highest term that comes from a clock, reached in the year 2109. It leaves room for terms
 * above any clock.
 */
const clockMax = 2 ** 42;
/** How far a term that a peer names may be above the higher of the known term and `clockMax`. */
const aboveKnownMax = 2 ** 20;

/**
 * The highest term that a peer may name for a shard. Without this bound, a peer could name a term
 * so high that nobody could take the shard again.
 */
export function termMax(known: ClaimOrder | undefined): Term {
  return Math.max(clockMax, known?.term ?? 0) + aboveKnownMax;
}

/** A term above every known one, which no process has been given. */
function nextTerm(known: ClaimOrder | undefined, nowMs = 0): Term {
  return Math.max(Math.min(nowMs, clockMax), (known?.term ?? 0) + 1);
}

/**
 * The shard's state once a pusher connects to the cache `own`; undefined if the pusher is shut out.
 * Returns `known` itself if the pusher has the shard already.
 */
export function arrived(
  own: string,
  known: ShardState | undefined,
  { shard, process, term: named, nowMs }: Arrival,
): ShardState | undefined {
  const isLater = known !== undefined && named > known.term;
  const isKnown = known !== undefined && known.process === process;
  const isSame = isKnown && !known.removed;
  if (isSame && known.via === 'local' && !isLater) return known;
  // A process that never received its welcome names term 0. Its id still shows that it had the
  // shard, so that a removal shuts this process out too.
  const isFenced = known !== undefined && !isSame && !isLater && (named !== 0 || (isKnown && process !== ''));
  if (isFenced || named > termMax(known)) return undefined;
  const term = Math.max(nextTerm(known, isSame || named !== 0 ? 0 : nowMs), named + 1);
  return { shard, term, process, removed: false, origin: own, via: 'local', plain: false };
}

/**
 * Compares a claim with the known state. `takes`: the claim replaces that state; `stands`: both are
 * the same. The committer calls this, because the committer orders claims and writes.
 */
export function decideClaim(known: ShardState | undefined, claim: Claim): Verdict {
  if (claim.via === 'local' && known?.plain !== true) return 'refused';
  const order = known === undefined ? 1 : compareClaims(claim, known);
  if (order !== 0) return order > 0 ? 'takes' : 'refused';
  if (claim.removed || known?.via === claim.via) return 'stands';
  return known?.via === 'local' ? 'refused' : 'takes';
}

export function claimed({ shard, term, process, removed, origin, via, plain }: Claim): ShardState {
  return { shard, term, process, removed, origin, via: removed ? undefined : via, plain: plain && !removed };
}

/**
 * The state after a plain write at the cache `own` to a shard that is not local there. The cache
 * chooses the term, because a plain writer has none.
 */
export function writtenPlainly(own: string, known: ShardState | undefined, shard: ShardName): ShardState {
  return { shard, term: nextTerm(known), process: '', removed: false, origin: own, via: 'local', plain: true };
}

/**
 * The state after a removal at the cache `own`. It keeps the id of the process that had the shard,
 * so that this process cannot bring the shard back.
 */
export function removedAt(own: string, known: ShardState | undefined, { shard, nowMs }: Pick<Arrival, 'shard' | 'nowMs'>): ShardState {
  return { shard, term: nextTerm(known, nowMs), process: known?.process ?? '', removed: true, origin: own, via: undefined, plain: false };
}

/**
 * The neighbour through which the shard's origin is reached. A shard without a via came from the
 * former parent, so the parent is returned.
 */
export function neighbourTowards({ via }: ShardState): Neighbour {
  return via === undefined || via === 'local' ? 'parent' : via;
}

/** Whether the shard's origin is another cache, as far as this cache knows. */
export function isElsewhere(known: ShardState | undefined, own: string): boolean {
  return known !== undefined && !known.removed && known.via !== 'local' && known.origin !== own;
}

/**
 * Chooses the via of a shard. `highest`: the highest claim ever received. Returns undefined if
 * nothing is known of the shard.
 */
export function choose(
  own: string,
  known: Choice | undefined,
  { shard, highest, offers }: Readonly<{ shard: ShardName; highest: GrantedTerm | undefined; offers: ReadonlyMap<Neighbour, Offer> }>,
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
  if (origin === own) return isHigher ? reclaimOwn(nobodys, known) : known;

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

/**
 * The choice if the highest claim is this cache's own, and this cache does not remember it, because
 * its disk was rolled back.
 */
function reclaimOwn(nobodys: Choice, known: Choice | undefined): Choice {
  if (known?.state.via !== 'local' || !known.state.plain) return nobodys;
  const state: ShardState = { ...nobodys.state, term: nextTerm(nobodys.state), process: '', via: 'local', plain: true };
  return { ...nobodys, state, reached: true };
}

function preference(one: Neighbour, other: Neighbour, now: Via | undefined): number {
  if (one === now) return -1;
  if (other === now) return 1;
  return compareTexts(one, other);
}
