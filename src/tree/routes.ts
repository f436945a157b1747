/**
 * Chooses each shard's via: the neighbour by which this cache reaches the shard's origin. It keeps
 * the last claim of every open link, and chooses among them (domain/claim.ts).
 *
 *   a claim, the end of a link, ──▶ choose ──▶ equals the store's state: sent to all neighbours
 *   a change of policy                ▲  └───▶ differs from it: sent to the committer
 *                                     └──────────────┘ once it is published
 *
 * Only the chosen claim is in the store and survives a restart. After a restart, this cache learns
 * the paths, and whether an origin is reached, from open links again.
 *
 * Bounds: `shardsMax`; for each shard the last claim of each link.
 */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import {
  choose,
  compareClaims,
  termMax,
  type Choice,
  type Claim,
  type ClaimOrder,
  type GrantedTerm,
  type Offer,
  type ShardState,
} from '../domain/claim.js';
import type { Clock } from '../domain/ports.js';
import type { PushLane } from '../domain/store-port.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour } from '../domain/via.js';
import type { FrameOf } from '../frames/frame.js';
import { frameBounds } from '../frames/frame-bounds.js';
import type { PublishedState } from '../domain/published-state.js';

export type RoutesParts = Readonly<{
  own: string;
  known: PublishedState;
  lane: PushLane;
  clock: Clock;
  log: BoundedLog;
  /** Whether a child may claim the shard. */
  mayClaim: (shard: ShardName, from: Neighbour) => boolean;
  /** Whether a local shard has a pusher that may keep the shard. */
  hasPusher: (shard: ShardName) => boolean;
  /** The claim of the shard that neighbours get has changed. */
  changed: (shard: ShardName) => void;
}>;

type KnownClaims = { highest: GrantedTerm; readonly offers: Map<Neighbour, Offer> };

/**
 * A cache never forgets a shard, even a removed one, so the number that peers can invent is
 * bounded.
 */
const shardsMax = 100_000;
/**
 * Two caches that share an id take each other's claims for their own. Each would raise its term
 * above the other's without end, so a cache raises its term at most once in this time.
 */
const ownClaimRetryMs = 10_000;
const unavailableRetryMs = 1_000;

export class Routes {
  readonly #parts: RoutesParts;
  readonly #claims = new Map<ShardName, KnownClaims>();
  /** The choices for the shards that were claimed since the start. */
  readonly #choices = new Map<ShardName, Choice>();
  readonly #startedMs: number;
  /**
   * Since when no path reaches the shard's origin. Contains only shards that were reached or
   * claimed since the start.
   */
  readonly #unreachedMs = new Map<ShardName, number>();
  /**
   * For a shard whose chosen claim does not say that a pusher holds it: that claim, and since when.
   */
  readonly #unheld = new Map<ShardName, Readonly<{ claim: ClaimOrder; sinceMs: number }>>();
  /**
   * Shards for which this cache has lately received a claim of its own that it does not remember.
   */
  readonly #reclaimed = new Set<ShardName>();
  /** The choice last sent to the committer, until the committer has decided. */
  readonly #asked = new Map<ShardName, ShardState>();
  #isClosed = false;

  constructor(parts: RoutesParts) {
    this.#parts = parts;
    this.#startedMs = parts.clock.now();
  }

  /** Returns why the neighbour's claim is ignored; undefined if it is accepted. */
  receiveClaim(from: Neighbour, { shard, term, process, removed, origin, path, reached, held }: FrameOf<'claim'>): string | undefined {
    const known = this.#parts.known.shard(shard);
    const reported: GrantedTerm = { term, process, removed, origin };
    if (removed && known !== undefined && compareClaims(reported, known) === 0) {
      // Caches keep removed shards. If these counted, they would use up the number that a child may
      // claim.
      this.#claims.get(shard)?.offers.delete(from);
      return undefined;
    }
    const isThrough = path.includes(this.#parts.own);
    const why = this.#refusalOf(from, { shard, term }, known);
    // A neighbour sends this cache's own claim back even if the neighbour may not claim the shard.
    if (why !== undefined) return isThrough ? undefined : why;
    const heard = this.#claims.get(shard) ?? { highest: reported, offers: new Map<Neighbour, Offer>() };
    this.#claims.set(shard, heard);
    // A claim of this cache that a neighbour sends back is not another path. So it is dropped,
    // unless the neighbour is the shard's via.
    if (isThrough && known?.via !== from) heard.offers.delete(from);
    else heard.offers.set(from, { ...reported, path, reached, held });
    if (compareClaims(reported, heard.highest) > 0) heard.highest = reported;
    this.#decide(shard);
    return undefined;
  }

  /** Resolves once the store's queue has room for more choices. */
  drained(): Promise<void> {
    return this.#parts.lane.drained();
  }

  /** The link is down: its claims do not count any more. */
  down(from: Neighbour): void {
    for (const [shard, { offers }] of this.#claims) if (offers.delete(from)) this.#decide(shard);
  }

  follow(shards: Iterable<ShardState>): void {
    for (const { shard } of shards) this.#decide(shard);
  }

  /** How many shards each link claims for origins behind it. */
  get claims(): ReadonlyMap<Neighbour, number> {
    const claims = new Map<Neighbour, number>();
    for (const { offers } of this.#claims.values())
      for (const [neighbour, { removed, path }] of offers)
        if (!removed && !path.includes(this.#parts.own)) claims.set(neighbour, (claims.get(neighbour) ?? 0) + 1);
    return claims;
  }

  /**
   * Drops claims that the policies now forbid. Neighbours resend what they may claim, because their
   * link filters have changed too.
   */
  policiesChanged(): void {
    for (const [shard, { offers }] of this.#claims) {
      for (const neighbour of offers.keys())
        if (neighbour !== 'parent' && !this.#parts.mayClaim(shard, neighbour)) offers.delete(neighbour);
      this.#decide(shard);
    }
  }

  /** The claim to send to the neighbour. Undefined if the shard is unknown. */
  claimFor(to: Neighbour, shard: ShardName): FrameOf<'claim'> | undefined {
    const choice = this.#choice(shard);
    if (choice === undefined) return undefined;
    const { term, process, removed, origin, via } = choice.state;
    const path = [...choice.path.slice(1 - frameBounds.pathMax), this.#parts.own];
    const { reached, held } = choice;
    return { kind: 'claim', shard, term, process, removed, origin, path, reached, isYours: via === to, held };
  }

  /** Since when no path reaches the shard's origin. Undefined while one does. */
  unreachedMs(shard: ShardName): number | undefined {
    return this.#choice(shard)?.reached === true ? undefined : (this.#unreachedMs.get(shard) ?? this.#startedMs);
  }

  /**
   * For a shard of another cache: since when its claim says that no pusher holds it. Undefined
   * while a pusher does.
   */
  unheldMs(shard: ShardName): number | undefined {
    const choice = this.#choice(shard);
    if (choice?.held === true) return undefined;
    const unheld = this.#unheld.get(shard);
    if (choice === undefined || unheld === undefined) return this.#startedMs;
    return compareClaims(unheld.claim, choice.state) === 0 ? unheld.sinceMs : this.#parts.clock.now();
  }

  /** Stops deciding. Otherwise it would retry against a closed store forever. */
  close(): void {
    this.#isClosed = true;
  }

  /** A shard that nobody has claimed since the start is unreached, unless it is local. */
  #choice(shard: ShardName): Choice | undefined {
    const state = this.#parts.known.shard(shard);
    if (state === undefined) return undefined;
    if (state.via === 'local') return { state, path: [], reached: true, held: this.#parts.hasPusher(shard) };
    const chosen = this.#choices.get(shard);
    return chosen !== undefined && isSame(chosen.state, state) ? chosen : { state, path: [], reached: false, held: false };
  }

  #decide(shard: ShardName): void {
    if (this.#isClosed) return;
    const now = this.#parts.known.shard(shard);
    const { own, changed } = this.#parts;
    const { highest, offers } = this.#claims.get(shard) ?? { highest: undefined, offers: new Map<Neighbour, Offer>() };
    const before = this.#choice(shard);
    const choice = choose(own, before, { shard, highest, offers });
    if (choice === undefined) return;
    if (now === undefined || !isSame(choice.state, now)) return this.#ask(choice.state);
    this.#choices.set(shard, choice);
    if (choice.reached) this.#unreachedMs.delete(shard);
    else if (!this.#unreachedMs.has(shard)) this.#unreachedMs.set(shard, this.#parts.clock.now());
    this.#recordHeld(shard, choice);
    // A change of the store's state is sent when the store publishes it.
    const isSameWay = choice.reached === before?.reached && choice.path.join() === before.path.join();
    if (!isSameWay || choice.held !== before.held) changed(shard);
  }

  /**
   * Records since when no pusher holds the shard. A pusher that has just connected is welcomed a
   * moment before its claim says that it holds the shard.
   */
  #recordHeld(shard: ShardName, { state, held }: Choice): void {
    const unheld = this.#unheld.get(shard);
    if (held) this.#unheld.delete(shard);
    else if (unheld === undefined || compareClaims(unheld.claim, state) !== 0)
      this.#unheld.set(shard, { claim: state, sinceMs: this.#parts.clock.now() });
  }

  #ask(state: Claim): void {
    const { shard, via } = state;
    const asked = this.#asked.get(shard);
    if (asked !== undefined && isSame(asked, state)) return;
    if (via === 'local' && !this.#mayReclaim(shard)) return;
    this.#asked.set(shard, state);
    void this.#push(state).finally(() => {
      if (this.#asked.get(shard) === state) this.#asked.delete(shard);
    });
  }

  /** Returns true at most once per `ownClaimRetryMs`. After that time `#decide` runs again. */
  #mayReclaim(shard: ShardName): boolean {
    const { clock, log } = this.#parts;
    if (this.#reclaimed.has(shard)) return false;
    log.warn('link.own-claim-unknown', { shard });
    this.#reclaimed.add(shard);
    clock.after(ownClaimRetryMs, () => {
      this.#reclaimed.delete(shard);
      this.#decide(shard);
    });
    return true;
  }

  async #push(state: Claim): Promise<void> {
    const { lane, clock } = this.#parts;
    const { shard, removed } = state;
    const [outcome] = await lane.push([{ kind: 'claim', ...state }]);
    if (outcome?.kind === 'unavailable') return void clock.after(unavailableRetryMs, () => this.#decide(shard));
    if (removed && outcome?.kind === 'unchanged') await this.#clear(shard);
  }

  /** Removes the objects of a removed shard, unless another claim has the shard by now. */
  async #clear(shard: ShardName): Promise<void> {
    const { lane, clock, log } = this.#parts;
    const [cleared] = await lane.push([{ kind: 'clear', shard, fence: false, nowMs: clock.wallMs(), onlyRemoved: true }]);
    if (cleared?.kind === 'unavailable')
      return this.#isClosed ? undefined : void clock.after(unavailableRetryMs, () => void this.#clear(shard));
    if (cleared?.kind === 'swept' && cleared.removed > 0) log.info('link.shard-removed', { shard, objects: cleared.removed });
  }

  #refusalOf(from: Neighbour, { shard, term }: Pick<Claim, 'shard' | 'term'>, known: ShardState | undefined): string | undefined {
    const { mayClaim } = this.#parts;
    if (known === undefined && !this.#claims.has(shard) && Math.max(this.#parts.known.shardCount, this.#claims.size) >= shardsMax)
      return `this cache already knows ${shardsMax} shards, the most that it accepts`;
    if (from === 'parent') return undefined;
    if (term > termMax(known)) return `its term is above ${termMax(known)}, the highest that a child may claim now`;
    return mayClaim(shard, from)
      ? undefined
      : 'the policy does not let this child claim the shard, or the child has claimed as many shards as it may';
  }
}

function isSame(one: ShardState, other: ShardState): boolean {
  return compareClaims(one, other) === 0 && one.via === other.via;
}
