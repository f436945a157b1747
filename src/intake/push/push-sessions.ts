/**
 * Which session has each shard, and since when a shard has one or none.
 *
 * K1 At most one session has a shard. When the store gives the shard to another session, that one
 *    replaces the first.
 * K2 All sessions of a shard write through one lane, so the store decides the pushes of an earlier
 *    session first.
 * Bound: one entry for each shard for which a pusher connected since the start.
 */
import type { ShardState } from '../../domain/claim.js';
import { entryOf } from '../../domain/base/entry-of.js';
import { Listeners } from '../../domain/base/listeners.js';
import type { Subscription } from '../../domain/ports.js';
import type { PeerPusher, PushLane, Writer } from '../../domain/store-port.js';
import type { Term } from '../../domain/push.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { ByeReason } from '../../frames/bye.js';
import type { FrameOf, SliceReport } from '../../frames/frame.js';
import type { PushersElsewhere } from './pushers-elsewhere.js';
import { displaced } from './session.js';
import { SliceReports } from '../shards/slice-reports.js';

export type Holder = Readonly<{
  process: string;
  term: Term;
  peer: string;
  silentSinceMs: () => number | undefined;
  bye: (reason: ByeReason, message: string, retryAfterMs?: number) => void;
  /**
   * All slices that the pusher has named, as `formatSlice` texts; undefined while the shard may
   * have others.
   */
  named: () => ReadonlySet<string> | undefined;
  /** The type was withdrawn, and its objects were dropped. */
  dropped: (resource: Resource) => void;
  /** Types were declared, perhaps some that were unknown here. */
  declared: () => void;
  /** Another writer has changed the slice, so the pusher must sync it again. */
  overwritten: (slice: Slice) => void;
}>;

export type Presence = Readonly<{
  /** Undefined while no pusher is connected, or the pusher is silent. */
  peer: string | undefined;
  sinceMs: number;
  /** Undefined for a slice without a report. */
  reported: (slice: Slice) => SliceReport | undefined;
}>;

type Entry = {
  readonly lane: PushLane;
  holder: Holder | undefined;
  /** Undefined until a session gets the shard. */
  sinceMs: number | undefined;
  reported: SliceReports;
};

type Elsewhere = Pick<PushersElsewhere, 'of' | 'hasLivePusher' | 'present' | 'follow'>;

/** How long after a start a shard is kept for the pusher that had it before. */
const returnMs = 5_000;
/** A pusher without a source for this long loses its shard to a waiting pusher. */
const sourceFailedMaxMs = 10_000;
/**
 * Limits the characters of the names of incomplete types that this server reports to the others:
 * for one shard, and for all shards. The names of kcp's 18 types have some 700 characters. A record
 * in etcd has at most 1.5 MiB.
 */
const lackingCharactersOfShardMax = 2_048;
const lackingCharactersMax = 256 * 1_024;

export class PushSessions {
  readonly #writer: Pick<Writer, 'lane'>;
  readonly #entries = new Map<ShardName, Entry>();
  readonly #listeners = new Listeners<readonly Slice[]>();
  readonly #startedMs: number;
  readonly #elsewhere: Elsewhere | undefined;

  /** `elsewhere`: the pushers at other servers of the store, if there may be other servers. */
  constructor(writer: Pick<Writer, 'lane'>, nowMs: number, elsewhere?: Elsewhere) {
    this.#writer = writer;
    this.#startedMs = nowMs;
    this.#elsewhere = elsewhere;
    elsewhere?.follow((slices) => {
      this.#listeners.notify([]);
      if (slices.length > 0) this.#listeners.notify(slices);
    });
  }

  get pusherCount(): number {
    let held = 0;
    for (const { holder } of this.#entries.values()) if (holder !== undefined) held += 1;
    return held;
  }

  lane(shard: ShardName): PushLane {
    return this.#entry(shard).lane;
  }

  enter(shard: ShardName, holder: Holder, nowMs: number): void {
    const entry = this.#entry(shard);
    const before = entry.holder;
    entry.holder = holder;
    entry.sinceMs = nowMs;
    // The reports of the previous session are outdated. The new pusher reports at once.
    entry.reported = new SliceReports();
    this.#listeners.notify([]);
    if (before === undefined) return;
    if (before.process === holder.process) before.bye('replaced', 'the same process has connected again');
    else before.bye('fenced', `the shard ${shard} now has the term ${holder.term}`);
  }

  leave(shard: ShardName, holder: Holder, nowMs: number): void {
    const entry = this.#entry(shard);
    if (entry.holder !== holder) return;
    entry.holder = undefined;
    entry.sinceMs = nowMs;
    this.#listeners.notify([]);
  }

  evict(shard: ShardName, { reason, message, retryAfterMs }: Readonly<{ reason: ByeReason; message: string; retryAfterMs: number }>): void {
    this.#entries.get(shard)?.holder?.bye(reason, message, retryAfterMs);
  }

  evictAll(reason: ByeReason, message: string, retryAfterMs: number): void {
    for (const { holder } of this.#entries.values()) holder?.bye(reason, message, retryAfterMs);
  }

  /** A type was withdrawn: if it is declared again, every session resyncs its slices. */
  drop(resource: Resource): void {
    for (const { holder } of this.#entries.values()) holder?.dropped(resource);
  }

  /** Types were declared: sessions request the slices that wait for them. */
  declared(): void {
    for (const { holder } of this.#entries.values()) holder?.declared();
  }

  /** Ends the shard's session, unless `state` is local and its term is not above the session's. */
  evictOlder(shard: ShardName, state: ShardState, message: string): void {
    const holder = this.#entries.get(shard)?.holder;
    if (holder === undefined || (state.via === 'local' && holder.term >= state.term)) return;
    const { reason, retryAfterMs } = displaced(holder.process, state);
    holder.bye(reason, message, retryAfterMs);
  }

  /** Whether the shard has a pusher, even if it is silent or has no source. */
  hasPusher(shard: ShardName): boolean {
    return this.#entries.get(shard)?.holder !== undefined || this.#elsewhere?.of(shard)?.pusher !== undefined;
  }

  overwritten(slice: Slice): void {
    if (!this.leavesOut(slice)) this.#entries.get(slice.shard)?.holder?.overwritten(slice);
  }

  /** Whether the shard has a pusher that is not silent, and has not lacked its source for long. */
  hasLivePusher(shard: ShardName, nowMs: number): boolean {
    return this.#isHeldHere(shard, nowMs) || this.#elsewhere?.hasLivePusher(shard, nowMs) === true;
  }

  #isHeldHere(shard: ShardName, nowMs: number): boolean {
    const entry = this.#entries.get(shard);
    if (entry?.holder === undefined || entry.holder.silentSinceMs() !== undefined) return false;
    const { connected, sinceMs } = entry.reported.shard(shard) ?? { connected: true, sinceMs: nowMs };
    return connected || nowMs - sinceMs < sourceFailedMaxMs;
  }

  /**
   * Whether a local shard is held. Soon after the start, a shard without any session yet counts as
   * held, because its pusher may reconnect.
   */
  keeps(shard: ShardName, nowMs: number): boolean {
    if (this.hasLivePusher(shard, nowMs)) return true;
    const hadPusher = this.#entries.get(shard)?.sinceMs !== undefined;
    return !hadPusher && nowMs - this.#startedMs < returnMs;
  }

  /**
   * The shards whose pushers are connected and not silent, with the slices that the pushers have
   * named.
   */
  get present(): ReadonlyMap<ShardName, ReadonlySet<string> | undefined> {
    const present = new Map<ShardName, ReadonlySet<string> | undefined>();
    for (const [shard, { holder }] of this.#entries)
      if (holder !== undefined && holder.silentSinceMs() === undefined) present.set(shard, holder.named());
    for (const shard of this.#elsewhere?.present() ?? []) if (!present.has(shard)) present.set(shard, undefined);
    return present;
  }

  /** Whether the pusher has named all slices of its shard, but not this one. */
  leavesOut(slice: Slice): boolean {
    return this.#entries.get(slice.shard)?.holder?.named()?.has(formatSlice(slice)) === false;
  }

  /**
   * A pusher has named or withdrawn these slices. Undefined: its set of names became complete or
   * incomplete.
   */
  notifyNames(slices: readonly Slice[] | undefined): void {
    if (slices === undefined || slices.length > 0) this.#listeners.notify(slices ?? []);
  }

  /**
   * Calls `listener` with the slices on which a pusher has reported something new. Calls it with
   * none when a pusher connects or leaves, or its set of names becomes complete or incomplete.
   */
  follow(listener: (slices: readonly Slice[]) => void): Subscription {
    return this.#listeners.subscribe(listener);
  }

  recordStatus(shard: ShardName, { freshness, withdrawn }: Omit<FrameOf<'status'>, 'kind'>, nowMs: number): void {
    const { reported } = this.#entry(shard);
    const changed = [...reported.update(freshness, nowMs), ...reported.withdraw(withdrawn, nowMs)];
    if (changed.length > 0) this.#listeners.notify(changed);
  }

  /**
   * The pushers that are connected here and not silent, as this server reports them to the others.
   * `heldOf`: the types of a shard that the store holds. A held type without a report counts as not
   * whole.
   */
  pushersForPeers(nowMs: number, heldOf: (shard: ShardName) => readonly Resource[]): ReadonlyMap<ShardName, PeerPusher> {
    const here = new Map<ShardName, PeerPusher>();
    let charactersLeft = lackingCharactersMax;
    for (const [shard, { holder, reported }] of this.#entries) {
      if (holder === undefined || holder.silentSinceMs() !== undefined) continue;
      const { whole, ...together } = reported.together(shard);
      const lacks = reported.lackingTypes(shard, heldOf(shard), Math.min(charactersLeft, lackingCharactersOfShardMax));
      for (const type of lacks ?? []) charactersLeft -= type.length;
      const told = { peer: holder.peer, isHeld: this.#isHeldHere(shard, nowMs), ...together, whole: whole && lacks?.size === 0 };
      here.set(shard, lacks === undefined || lacks.size === 0 ? told : { ...told, lacks });
    }
    return here;
  }

  /**
   * `sinceMs`: the last sign of life of a silent pusher, or this server's start if nobody has
   * pushed the shard since.
   */
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

  /** The slices of the shard on which its pusher here has reported. */
  reportedOf(shard: ShardName): Iterable<Slice> {
    return this.#entries.get(shard)?.reported.slicesOf(shard) ?? [];
  }

  #presenceHere(shard: ShardName): Presence {
    const entry = this.#entries.get(shard);
    const { holder, sinceMs = this.#startedMs } = entry ?? {};
    const reported = (slice: Slice): SliceReport | undefined => entry?.reported.slice(slice);
    const silentMs = holder?.silentSinceMs();
    return silentMs === undefined ? { peer: holder?.peer, sinceMs, reported } : { peer: undefined, sinceMs: silentMs, reported };
  }

  /** The pusher's report on a slice. Without one, the lag is 0. */
  freshness(slice: Slice): SliceReport {
    const { peer, reported } = this.presence(slice.shard);
    const { connected = false, lagMs = 0, whole = false } = reported(slice) ?? {};
    return { connected: peer !== undefined && connected, lagMs, whole };
  }

  #entry(shard: ShardName): Entry {
    const create = () => ({ lane: this.#writer.lane(), holder: undefined, sinceMs: undefined, reported: new SliceReports() });
    return entryOf<ShardName, Entry>(this.#entries, shard, create);
  }
}
