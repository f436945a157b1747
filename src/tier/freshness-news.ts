/**
 * Who reports on the shards here: the pushers of this cache, and the caches at the other ends of its links. When one of them reports, comes
 * or goes, that is news for every link, which looks at the slices concerned before its next report on freshness.
 *
 *   a pusher or a link reports on slices          these
 *   it comes, goes, falls silent or is heard      all of its shards
 *   a pusher names slices, or withdraws some      these
 *   what a pusher has named is all, or no longer  all of its shard
 *   a link lets other slices through              all of its shards
 *
 * Silence causes no event, so every `lookIntervalMs` there is a look at who is connected. A look costs one entry for each of them, however many
 * slices there are. Links get the news one in a turn of the event loop.
 */
import type { Clock } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour } from '../domain/via.js';
import type { Slice } from '../domain/slice.js';
import type { PublishedState } from '../domain/published-state.js';
import type { PushSessions } from '../intake/push-sessions.js';
import type { LinkFilters } from './link-filters.js';
import type { ReportedFreshness } from './reported-freshness.js';

/** Shards and slices whose freshness, or wholeness, may have changed. */
export type News = Readonly<{ shards: ReadonlySet<ShardName>; slices: readonly Slice[] }>;

type Session = Readonly<{ filters: LinkFilters | undefined; hear: (news: News) => void }>;

export type FreshnessNewsParts = Readonly<{
  known: Pick<PublishedState, 'shards'>;
  pushers: Pick<PushSessions, 'present' | 'follow'>;
  freshness: Pick<ReportedFreshness, 'neighbours' | 'presence'>;
  sessions: () => Iterable<readonly [Neighbour, Session]>;
  clock: Clock;
  turn: () => Promise<void>;
}>;

/** How a link was at the last look. */
type Seen = Readonly<{ isUp: boolean; filters: LinkFilters | undefined }>;

const lookIntervalMs = 1_000;

export class FreshnessNews {
  readonly #parts: FreshnessNewsParts;
  #pushers: ReadonlyMap<ShardName, ReadonlySet<string> | undefined> = new Map();
  readonly #links = new Map<Neighbour, Seen>();
  #shards = new Set<ShardName>();
  #slices: Slice[] = [];
  /** At most two that are not complete: with two, one of them is not the neighbour who asks. */
  #incomplete: readonly Neighbour[] = [];
  #isNotifying = false;
  #cancelLook = (): void => {};
  readonly #cancelFollow: () => void;

  constructor(parts: FreshnessNewsParts) {
    this.#parts = parts;
    const { pushers } = parts;
    const subscription = pushers.follow((slices) => (slices.length === 0 ? this.look() : this.notify(slices)));
    this.#cancelFollow = () => subscription.cancel();
    this.#lookAtLinks();
    this.#lookLater();
  }

  /** Whether all neighbours that ever were, except `but`, are connected, and every shard is known that anybody behind them knows. */
  isComplete(but?: Neighbour): boolean {
    return this.#incomplete.every((neighbour) => neighbour === but);
  }

  /** Somebody has reported on these. */
  notify(slices: readonly Slice[]): void {
    for (const slice of slices) this.#slices.push(slice);
    if (slices.length > 0) this.#notifySoon();
  }

  /**
   * A link reports: `note` returns of which slices. The link may be up only because of that, and may have been down between two looks; slices that
   * were looked at just then were reported as such.
   */
  heard(neighbour: Neighbour, note: () => readonly Slice[]): void {
    const { freshness } = this.#parts;
    const wasUp = freshness.presence(neighbour).isUp;
    this.notify(note());
    const { isUp } = freshness.presence(neighbour);
    if (isUp && !wasUp) this.#links.delete(neighbour);
    if (this.#links.get(neighbour)?.isUp !== isUp) this.look();
  }

  /** Looks at who is connected, and at what links let through. */
  look(): void {
    const before = this.#pushers;
    const now = (this.#pushers = this.#parts.pushers.present);
    for (const [shard, named] of now) if (!before.has(shard) || before.get(shard) !== named) this.#shards.add(shard);
    for (const shard of before.keys()) if (!now.has(shard)) this.#shards.add(shard);
    this.#lookAtLinks();
    if (this.#shards.size > 0) this.#notifySoon();
  }

  close(): void {
    this.#cancelLook();
    this.#cancelFollow();
  }

  #lookLater(): void {
    this.#cancelLook = this.#parts.clock.after(lookIntervalMs, () => {
      this.#lookLater();
      this.look();
    });
  }

  #lookAtLinks(): void {
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
      const news = { shards: this.#shards, slices: this.#slices };
      this.#shards = new Set();
      this.#slices = [];
      this.#isNotifying = false;
      for (const [, session] of sessions()) {
        session.hear(news);
        await turn();
      }
    });
  }
}
