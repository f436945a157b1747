/**
 * Which session has which shard now, and since when there is one or none.
 *
 * K1 At most one session has a shard. The next one that the store gives it to replaces it.
 * K2 All sessions of a shard, one after the other, write through one lane: what an earlier one left in it stays in front.
 * Bound: one entry per shard that ever pushed since the start.
 */
import type { ShardState } from '../domain/claim.js';
import { Listeners } from '../domain/listeners.js';
import type { Subscription } from '../domain/ports.js';
import type { PeerPusher, PushLane, Writer } from '../domain/store-port.js';
import type { Term } from '../domain/push.js';
import { formatResource, type Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { ByeReason } from '../frames/bye.js';
import type { FrameOf, SliceReport } from '../frames/frame.js';
import type { PushersElsewhere } from './pushers-elsewhere.js';
import { displaced } from './session.js';
import { SliceReports } from './slice-reports.js';

/** A session as the others see it. */
export type Holder = Readonly<{
  process: string;
  term: Term;
  peer: string;
  silentSinceMs: () => number | undefined;
  bye: (reason: ByeReason, message: string, retryAfterMs?: number) => void;
  /** What it has named of the shard, as text; undefined: it has named nothing yet. */
  named: () => ReadonlySet<string> | undefined;
  /** The type is gone, and its objects with it. */
  dropped: (resource: Resource) => void;
  /** A type is declared that may not have been. */
  declared: () => void;
  /** Others have changed the slice: its pusher is asked to sync it again. */
  overwritten: (slice: Slice) => void;
}>;

export type Presence = Readonly<{
  /** Undefined while nobody holds it. */
  peer: string | undefined;
  sinceMs: number;
  /** Undefined for a slice of which it has reported nothing. */
  reported: (slice: Slice) => SliceReport | undefined;
}>;

type Entry = {
  readonly lane: PushLane;
  holder: Holder | undefined;
  sinceMs: number;
  reported: SliceReports;
  /** A session has had it since the start. */
  wasHeld: boolean;
};

type Elsewhere = Pick<PushersElsewhere, 'of' | 'isHeld' | 'present' | 'follow'>;

/** The pusher that had a shard before the start has this long to come back. */
const returnMs = 5_000;
/** A pusher without a source for this long gives way to another. */
const sourceFailedMaxMs = 10_000;
/** Of the names of types that other servers are told not to be whole: kcp's 18 have some 700. A record of etcd has 1.5 MiB at most. */
const lackingCharactersOfShardMax = 2_048;
const lackingCharactersMax = 256 * 1_024;

export class PushSessions {
  readonly #writer: Pick<Writer, 'lane'>;
  readonly #entries = new Map<ShardName, Entry>();
  readonly #listeners = new Listeners<readonly Slice[]>();
  readonly #startedMs: number;
  readonly #elsewhere: Elsewhere | undefined;

  /** `elsewhere`: at other servers of the store, where it may have any. */
  constructor(writer: Pick<Writer, 'lane'>, nowMs: number, elsewhere?: Elsewhere) {
    this.#writer = writer;
    this.#startedMs = nowMs;
    this.#elsewhere = elsewhere;
    elsewhere?.follow((slices) => {
      this.#notify([]);
      if (slices.length > 0) this.#notify(slices);
    });
  }

  /** How many shards are held now. */
  get held(): number {
    let held = 0;
    for (const { holder } of this.#entries.values()) if (holder !== undefined) held += 1;
    return held;
  }

  lane(shard: ShardName): PushLane {
    return this.#entry(shard).lane;
  }

  /** The store has given the shard to this session. */
  enter(shard: ShardName, holder: Holder, nowMs: number): void {
    const entry = this.#entry(shard);
    const before = entry.holder;
    entry.holder = holder;
    entry.wasHeld = true;
    entry.sinceMs = nowMs;
    // Reports of the session before are outdated; the new one reports at once.
    entry.reported = new SliceReports();
    this.#notify([]);
    if (before === undefined) return;
    if (before.process === holder.process) before.bye('replaced', 'the same process has connected again');
    else before.bye('fenced', `the shard ${shard} belongs to the term ${holder.term}`);
  }

  leave(shard: ShardName, holder: Holder, nowMs: number): void {
    const entry = this.#entry(shard);
    if (entry.holder !== holder) return;
    entry.holder = undefined;
    entry.sinceMs = nowMs;
    this.#notify([]);
  }

  /** Ends the session that holds the shard, if there is one. */
  evict(shard: ShardName, { reason, message, retryAfterMs }: Readonly<{ reason: ByeReason; message: string; retryAfterMs: number }>): void {
    this.#entries.get(shard)?.holder?.bye(reason, message, retryAfterMs);
  }

  /** Ends every session; its pusher may come back. */
  evictAll(reason: ByeReason, message: string, retryAfterMs: number): void {
    for (const { holder } of this.#entries.values()) holder?.bye(reason, message, retryAfterMs);
  }

  /** A type is gone: should it come back, every session resyncs its slices. */
  drop(resource: Resource): void {
    for (const { holder } of this.#entries.values()) holder?.dropped(resource);
  }

  /** A type is declared that may not have been: sessions ask for the slices that wait for it. */
  declared(): void {
    for (const { holder } of this.#entries.values()) holder?.declared();
  }

  /** Ends the session of the shard unless `state` is its own. */
  evictOlder(shard: ShardName, state: ShardState, message: string): void {
    const holder = this.#entries.get(shard)?.holder;
    if (holder === undefined || (state.via === 'local' && holder.term >= state.term)) return;
    const { reason, retryAfterMs } = displaced(holder.process, state);
    holder.bye(reason, message, retryAfterMs);
  }

  /** Whether the shard has a pusher, heard or not, with a source or without. */
  hasPusher(shard: ShardName): boolean {
    return this.#entries.get(shard)?.holder !== undefined || this.#elsewhere?.of(shard)?.pusher !== undefined;
  }

  /** Others have changed the slice. */
  overwritten(slice: Slice): void {
    if (!this.leavesOut(slice)) this.#entries.get(slice.shard)?.holder?.overwritten(slice);
  }

  /** Whether the shard has a pusher that keeps it: it is heard, and has a source. */
  isHeld(shard: ShardName, nowMs: number): boolean {
    return this.#isHeldHere(shard, nowMs) || this.#elsewhere?.isHeld(shard, nowMs) === true;
  }

  #isHeldHere(shard: ShardName, nowMs: number): boolean {
    const entry = this.#entries.get(shard);
    if (entry?.holder === undefined || entry.holder.silentSinceMs() !== undefined) return false;
    const { connected, sinceMs } = entry.reported.shard(shard) ?? { connected: true, sinceMs: nowMs };
    return connected || nowMs - sinceMs < sourceFailedMaxMs;
  }

  /** Whether a local shard is held, or was before the start, so that its pusher may still come back. */
  keeps(shard: ShardName, nowMs: number): boolean {
    if (this.isHeld(shard, nowMs)) return true;
    const hadPusher = this.#entries.get(shard)?.wasHeld === true;
    return !hadPusher && nowMs - this.#startedMs < returnMs;
  }

  /** The shards whose pushers are connected, and heard, with what these have named. */
  get present(): ReadonlyMap<ShardName, ReadonlySet<string> | undefined> {
    const present = new Map<ShardName, ReadonlySet<string> | undefined>();
    for (const [shard, { holder }] of this.#entries)
      if (holder !== undefined && holder.silentSinceMs() === undefined) present.set(shard, holder.named());
    for (const shard of this.#elsewhere?.present() ?? []) if (!present.has(shard)) present.set(shard, undefined);
    return present;
  }

  /** Whether the pusher of the shard has named its slices, and not this one. */
  leavesOut(slice: Slice): boolean {
    return this.#entries.get(slice.shard)?.holder?.named()?.has(formatSlice(slice)) === false;
  }

  /** A pusher names these slices now, or no longer; undefined: what it has named are all of its shard now, or are no longer. */
  named(slices: readonly Slice[] | undefined): void {
    if (slices === undefined || slices.length > 0) this.#notify(slices ?? []);
  }

  /** Calls with slices whose pusher has reported something new; with none, when a pusher has come or gone, or what it has named is all. */
  follow(listener: (slices: readonly Slice[]) => void): Subscription {
    return this.#listeners.subscribe(listener);
  }

  /** What has changed of what the pusher reports. */
  note(shard: ShardName, { freshness, withdrawn }: Omit<FrameOf<'status'>, 'kind'>, nowMs: number): void {
    const { reported } = this.#entry(shard);
    const changed = [...reported.note(freshness, nowMs), ...reported.withdraw(withdrawn, nowMs)];
    if (changed.length > 0) this.#notify(changed);
  }

  /**
   * The pushers that are connected here and heard, as the other servers of the store are told of them. `heldOf`: the types of a shard that the store has, because one of
   * which its pusher reports nothing is not whole either.
   */
  here(nowMs: number, heldOf: (shard: ShardName) => readonly Resource[]): ReadonlyMap<ShardName, PeerPusher> {
    const here = new Map<ShardName, PeerPusher>();
    let charactersLeft = lackingCharactersMax;
    for (const [shard, { holder, reported }] of this.#entries) {
      if (holder === undefined || holder.silentSinceMs() !== undefined) continue;
      const { whole, ...together } = reported.together(shard);
      const lacks = reported.lacks(shard, heldOf(shard), Math.min(charactersLeft, lackingCharactersOfShardMax));
      for (const type of lacks ?? []) charactersLeft -= type.length;
      const told = { peer: holder.peer, isHeld: this.#isHeldHere(shard, nowMs), ...together, whole: whole && lacks?.size === 0 };
      here.set(shard, lacks === undefined || lacks.size === 0 ? told : { ...told, lacks });
    }
    return here;
  }

  /** A shard that nobody has pushed since the start is away since then; one whose pusher is silent, since that was heard. */
  presence(shard: ShardName): Presence {
    const here = this.#presenceHere(shard);
    const elsewhere = this.#elsewhere?.of(shard);
    if (here.peer !== undefined || elsewhere === undefined) return here;
    const { pusher, sinceMs } = elsewhere;
    if (pusher === undefined) return { ...here, sinceMs: Math.max(here.sinceMs, sinceMs) };
    const { peer, connected, lagMs, whole, lacks } = pusher;
    const isWhole = ({ resource }: Slice): boolean => whole || lacks?.has(formatResource(resource)) === false;
    return { peer, sinceMs, reported: (slice) => ({ connected, lagMs, whole: isWhole(slice) }) };
  }

  /** The slices of a shard of which its pusher here has reported something. */
  reportedOf(shard: ShardName): Iterable<Slice> {
    return this.#entries.get(shard)?.reported.of(shard) ?? [];
  }

  #presenceHere(shard: ShardName): Presence {
    const entry = this.#entries.get(shard);
    if (entry === undefined) return { peer: undefined, sinceMs: this.#startedMs, reported: () => undefined };
    const { holder, sinceMs } = entry;
    const reported = (slice: Slice): SliceReport | undefined => entry.reported.slice(slice);
    const silentMs = holder?.silentSinceMs();
    return silentMs === undefined ? { peer: holder?.peer, sinceMs, reported } : { peer: undefined, sinceMs: silentMs, reported };
  }

  /** What its pusher reports on a slice; the lag is 0 while nobody reports. */
  freshness(slice: Slice): SliceReport {
    const { peer, reported } = this.presence(slice.shard);
    const { connected = false, lagMs = 0, whole = false } = reported(slice) ?? {};
    return { connected: peer !== undefined && connected, lagMs, whole };
  }

  #notify(slices: readonly Slice[]): void {
    this.#listeners.tell(slices);
  }

  #entry(shard: ShardName): Entry {
    const known = this.#entries.get(shard);
    if (known !== undefined) return known;
    const entry: Entry = {
      lane: this.#writer.lane(),
      holder: undefined,
      sinceMs: this.#startedMs,
      reported: new SliceReports(),
      wasHeld: false,
    };
    this.#entries.set(shard, entry);
    return entry;
  }
}
