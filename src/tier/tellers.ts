/**
 * Who tells of the shards here: the pushers of this cache, and the caches at the other ends of its links. What one of them tells, or its coming
 * or going, is news for every link, which looks at the slices concerned before it tells of freshness next.
 *
 *   a pusher or a link tells of slices            these
 *   it comes, goes, falls silent or is heard      all of its shards
 *   a link lets other slices through              all of its shards
 *
 * Silence says nothing itself: every `lookIntervalMs` it is looked who is there. Cost of a look: one entry for each of them, however many slices
 * there are. Links hear of it one in a turn of the event loop.
 */
import type { Clock } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { LinkSide } from '../domain/side.js';
import type { Slice } from '../domain/slice.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { PushSessions } from '../intake/push-sessions.js';
import type { Edges } from './edges.js';
import type { ToldFreshness } from './told-freshness.js';

/** What may be fresher or staler than it was, and whole or not. */
export type News = Readonly<{ shards: ReadonlySet<ShardName>; slices: readonly Slice[] }>;

type Session = Readonly<{ edges: Edges | undefined; hear: (news: News) => void }>;

export type TellersParts = Readonly<{
  known: Pick<KnownShards, 'shards'>;
  pushers: Pick<PushSessions, 'present' | 'follow'>;
  freshness: Pick<ToldFreshness, 'sides' | 'presence'>;
  sessions: () => Iterable<readonly [LinkSide, Session]>;
  clock: Clock;
  turn: () => Promise<void>;
}>;

/** How a link was when it was looked at last. */
type Seen = Readonly<{ isUp: boolean; edges: Edges | undefined }>;

const lookIntervalMs = 1_000;

export class Tellers {
  readonly #parts: TellersParts;
  #pushers: ReadonlySet<ShardName> = new Set();
  readonly #links = new Map<LinkSide, Seen>();
  #shards = new Set<ShardName>();
  #slices: Slice[] = [];
  /** Of two that are not complete, both: one of them is not the other one who asks. */
  #incomplete: readonly LinkSide[] = [];
  #isTelling = false;
  #cancelLook = (): void => {};
  readonly #cancelFollow: () => void;

  constructor(parts: TellersParts) {
    this.#parts = parts;
    const { pushers } = parts;
    const subscription = pushers.follow((slices) => (slices.length === 0 ? this.look() : this.tell(slices)));
    this.#cancelFollow = () => subscription.cancel();
    this.#lookAtLinks();
    this.#lookLater();
  }

  /** Whether all neighbours that ever were, but for one, are there, and every shard is known that anybody behind them knows. */
  isComplete(but?: LinkSide): boolean {
    return this.#incomplete.every((side) => side === but);
  }

  /** Somebody has told of these. */
  tell(slices: readonly Slice[]): void {
    for (const slice of slices) this.#slices.push(slice);
    if (slices.length > 0) this.#tellSoon();
  }

  /**
   * A link reports: `note` answers of which slices. It may be up only by that, and may have been down between two looks: of slices that were
   * looked at just then it was reported so.
   */
  heard(side: LinkSide, note: () => readonly Slice[]): void {
    const { freshness } = this.#parts;
    const wasUp = freshness.presence(side).isUp;
    this.tell(note());
    const { isUp } = freshness.presence(side);
    if (isUp && !wasUp) this.#links.delete(side);
    if (this.#links.get(side)?.isUp !== isUp) this.look();
  }

  /** Who is there, and what do links let through? */
  look(): void {
    const before = this.#pushers;
    const now = new Set(this.#parts.pushers.present);
    this.#pushers = now;
    for (const shard of now) if (!before.has(shard)) this.#shards.add(shard);
    for (const shard of before) if (!now.has(shard)) this.#shards.add(shard);
    this.#lookAtLinks();
    if (this.#shards.size > 0) this.#tellSoon();
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
    const edgesOf = new Map([...sessions()].map(([side, { edges }]) => [side, edges]));
    const moved = new Set<LinkSide>();
    const incomplete: LinkSide[] = [];
    for (const side of freshness.sides) {
      const { isUp, isComplete } = freshness.presence(side);
      if (!isComplete && incomplete.length < 2) incomplete.push(side);
      const edges = edgesOf.get(side);
      const seen = this.#links.get(side);
      if (seen?.isUp === isUp && seen.edges === edges) continue;
      this.#links.set(side, { isUp, edges });
      moved.add(side);
    }
    this.#incomplete = incomplete;
    if (moved.size === 0) return;
    for (const { shard, side } of known.shards) if (side !== undefined && side !== 'local' && moved.has(side)) this.#shards.add(shard);
  }

  #tellSoon(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    const { sessions, turn } = this.#parts;
    void turn().then(async () => {
      const news = { shards: this.#shards, slices: this.#slices };
      this.#shards = new Set();
      this.#slices = [];
      this.#isTelling = false;
      for (const [, session] of sessions()) {
        session.hear(news);
        await turn();
      }
    });
  }
}
