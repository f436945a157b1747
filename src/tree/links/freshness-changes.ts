/**
 * Notifies every link when freshness may have changed. The pushers of this cache and the caches at
 * the other ends of its links report on the shards here. Each link checks the affected slices
 * before its next report on freshness.
 *
 *   what happens                                                affected slices
 *   a pusher or a link reports on slices                        these
 *   a pusher or a link connects, disconnects, falls silent,
 *   or answers again                                            all slices of its shards
 *   a pusher names or withdraws slices                          these
 *   a pusher says that it has named all slices, or no longer    all slices of its shard
 *   the policies of a link change                               all slices of its shards
 *
 * Silence causes no event, so this class checks every `checkIntervalMs` who is connected. A check
 * costs one entry for each pusher and link, however many slices there are. In each turn of the
 * event loop, one link is notified.
 */
import { every } from '../../domain/base/promises.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { ShardName } from '../../domain/shard.js';
import type { Neighbour } from '../../domain/via.js';
import type { Slice } from '../../domain/slice.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { PushSessions } from '../../intake/push/push-sessions.js';
import type { LinkFilters } from '../filters/link-filters.js';
import type { ReportedFreshness } from '../reported-freshness.js';

export type FreshnessChange = Readonly<{ shards: ReadonlySet<ShardName>; slices: readonly Slice[] }>;

type Session = Readonly<{ filters: LinkFilters | undefined; onFreshnessChange: (change: FreshnessChange) => void }>;

export type FreshnessChangesParts = Readonly<{
  known: Pick<PublishedState, 'shards'>;
  pushers: Pick<PushSessions, 'present' | 'follow'>;
  freshness: Pick<ReportedFreshness, 'neighbours' | 'presence'>;
  sessions: () => Iterable<readonly [Neighbour, Session]>;
  clock: Clock;
  turn: () => Promise<void>;
}>;

type Seen = Readonly<{ isUp: boolean; filters: LinkFilters | undefined }>;

const checkIntervalMs = 1_000;

export class FreshnessChanges {
  readonly #parts: FreshnessChangesParts;
  #pushers: ReadonlyMap<ShardName, ReadonlySet<string> | undefined> = new Map();
  readonly #links = new Map<Neighbour, Seen>();
  #shards = new Set<ShardName>();
  #slices: Slice[] = [];
  /**
   * At most two neighbours that are not complete. Two are enough: at least one of them is not the
   * `but` of `isComplete`.
   */
  #incomplete: readonly Neighbour[] = [];
  #isNotifying = false;
  readonly #cancelCheck: () => void;
  readonly #subscription: Subscription;

  constructor(parts: FreshnessChangesParts) {
    this.#parts = parts;
    this.#subscription = parts.pushers.follow((slices) => (slices.length === 0 ? this.check() : this.notify(slices)));
    this.#checkLinks();
    this.#cancelCheck = every(parts.clock, checkIntervalMs, () => this.check());
  }

  /**
   * Whether all neighbours that this cache ever had, except `but`, are connected and have reported
   * every shard that any cache behind them knows.
   */
  isComplete(but?: Neighbour): boolean {
    return this.#incomplete.every((neighbour) => neighbour === but);
  }

  /** A pusher or a link has reported on these slices. */
  notify(slices: readonly Slice[]): void {
    for (const slice of slices) this.#slices.push(slice);
    if (slices.length > 0) this.#notifySoon();
  }

  /**
   * `note` stores a link's report and returns the slices whose report changed.
   *
   * If the link counts as up only since this report, all of its shards are checked again. Otherwise
   * a link that was down only between two checks would go unnoticed, although its slices were
   * reported as not connected meanwhile.
   */
  recordReport(neighbour: Neighbour, note: () => readonly Slice[]): void {
    const { freshness } = this.#parts;
    const wasUp = freshness.presence(neighbour).isUp;
    this.notify(note());
    const { isUp } = freshness.presence(neighbour);
    if (isUp && !wasUp) this.#links.delete(neighbour);
    if (this.#links.get(neighbour)?.isUp !== isUp) this.check();
  }

  /** Checks who is connected, and the policies of the links. */
  check(): void {
    const before = this.#pushers;
    const now = (this.#pushers = this.#parts.pushers.present);
    for (const [shard, named] of now) if (!before.has(shard) || before.get(shard) !== named) this.#shards.add(shard);
    for (const shard of before.keys()) if (!now.has(shard)) this.#shards.add(shard);
    this.#checkLinks();
    if (this.#shards.size > 0) this.#notifySoon();
  }

  close(): void {
    this.#cancelCheck();
    this.#subscription.cancel();
  }

  #checkLinks(): void {
    const { freshness, sessions, known } = this.#parts;
    const filtersOf = new Map([...sessions()].map(([neighbour, { filters }]) => [neighbour, filters]));
    const moved = new Set<Neighbour>();
    const incomplete: Neighbour[] = [];
    for (const neighbour of freshness.neighbours) {
      const { isUp, isComplete } = freshness.presence(neighbour);
      if (!isComplete && incomplete.length < 2) incomplete.push(neighbour);
      const filters = filtersOf.get(neighbour);
      const seen = this.#links.get(neighbour);
      if (seen?.isUp === isUp && seen.filters === filters) continue;
      this.#links.set(neighbour, { isUp, filters });
      moved.add(neighbour);
    }
    this.#incomplete = incomplete;
    if (moved.size === 0) return;
    for (const { shard, via } of known.shards) if (via !== undefined && via !== 'local' && moved.has(via)) this.#shards.add(shard);
  }

  #notifySoon(): void {
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    const { sessions, turn } = this.#parts;
    void turn().then(async () => {
      const change = { shards: this.#shards, slices: this.#slices };
      this.#shards = new Set();
      this.#slices = [];
      this.#isNotifying = false;
      for (const [, session] of sessions()) {
        session.onFreshnessChange(change);
        await turn();
      }
    });
  }
}
