/**
 * The sending half of a link. It sends the changes of the log that cross, and syncs where the log
 * is not enough.
 *
 *   tail   ─────●─────▶ changes of slices that cross, then `progress` ┐ by turns, a chunk or a page
 *   walks  [begin  page  page …  end]  of slices to be synced         ┘ each, while there is credit
 *
 * Q1 Changes do not pile up in memory: the sender reads the log only as fast as the link accepts
 *    frames. Memory: the credit, a chunk or page behind a few small ones, and the commits that the
 *    tail keeps.
 * Q2 The sender sends `end` only while the slice is synced here. It sends all other frames of a
 *    slice at any time.
 * Q3 The sender sends a shard's claim before any other frame of the shard.
 * Q4 A link whose position is behind the log resyncs everything, so there is never a gap.
 */
import { shown, type BoundedLog } from '../../diagnostics/bounded-log.js';
import type { Log } from '../../diagnostics/log.js';
import { entryOf } from '../../domain/base/entry-of.js';
import { Refused } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { Clock } from '../../domain/ports.js';
import type { History, Store } from '../../domain/store-port.js';
import { pause } from '../../domain/base/promises.js';
import type { Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import { flows, type Neighbour } from '../../domain/via.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { SendingStatus } from '../../domain/status.js';
import type { FrameConnection } from '../../frames/frame-connection.js';
import type { Credit, FrameLimits, FrameOf, InventorySlice } from '../../frames/frame.js';
import { AckWatch } from '../../sender/ack-watch.js';
import { Notifier } from '../../sender/notifier.js';
import type { Outgoing } from '../../sender/source.js';
import { SliceSyncs, slicesPerTurn } from '../syncs/slice-syncs.js';
import { filterChanges, pathMovesIn } from '../filters/filtered-changes.js';
import type { LinkFilters } from '../filters/link-filters.js';
import { OutgoingClaims, type OutgoingClaimsParts } from './outgoing-claims.js';
import { OutgoingReports, type FreshnessOf } from './outgoing-reports.js';
import type { PeerInventory } from './inventory.js';
import { LinkSenderQueue, outgoingChange, logFieldsOf, type LinkSenderBounds } from './link-sender-queue.js';
import { SliceSender, type SliceSenderParts } from '../syncs/slice-sender.js';
import type { SliceSync } from '../syncs/slice-sync.js';
import { locatePosition, Tail } from './tail.js';
import type { FreshnessChange } from './freshness-changes.js';

/** What the tree passes on to the sending half of each link. */
export type LinkSenderContext = Readonly<{
  store: Pick<Store, 'objects' | 'revisions' | 'commits' | 'paths' | 'state'>;
  /** Reads the change log through the chunks that all links of this cache share. */
  history: Pick<History, 'everyChange'>;
  /** Whether this cache holds the whole slice, or no object of the slice can ever arrive here. */
  isSynced: (slice: Slice) => boolean;
  /** Whether the shard's via could send a slice that this cache does not know. */
  canArrive: (slice: Slice) => boolean;
  /** Asks the shard's via about a slice that the other end holds and this cache does not know. */
  unknown: (slice: Slice) => void;
  freshnessOf: FreshnessOf;
  /**
   * Whether all neighbours that this cache ever had, except `but`, are connected and know all
   * shards behind them.
   */
  isComplete: (but: Neighbour) => boolean;
  clock: Clock;
  random: () => number;
  turn: () => Promise<void>;
  log: Log;
  /** For events that a peer can cause as often as it likes. */
  boundedLog: BoundedLog;
}>;

type LinkSenderParts = LinkSenderContext & Readonly<{ connection: FrameConnection }> & Pick<OutgoingClaimsParts, 'inventory' | 'claimFor'>;

export type LinkSenderOptions = LinkSenderBounds &
  Readonly<{
    /** How often the sender sends its position while no object crosses. */
    progressIntervalMs: number;
    /** The link closes if the other end owes acknowledgements and sends none for this long. */
    ackTimeoutMs: number;
    /** How often the sender sends the digests of all slices. */
    digestIntervalMs: number;
  }>;

/** The other end's position, inventory, credit and limits, as it sent them. */
export type Receiver = Readonly<{ position: string; held: PeerInventory; credit: Credit; limits: FrameLimits }>;

/**
 * One turn of the event loop sends at most this many frames. The turn stops once `turnBytesMax`
 * bytes wait for the network.
 */
const framesPerTurn = 8;
const turnBytesMax = 512 * 1024;
const acksCheckMs = 5_000;
/** A shard with fewer slices counts as this many. */
const slicesPerShard = 24;

export class LinkSender {
  readonly #parts: LinkSenderParts;
  readonly #options: LinkSenderOptions;
  readonly #to: Neighbour;
  readonly #notifier = new Notifier();
  readonly #claims: OutgoingClaims;
  readonly #reports: OutgoingReports;
  readonly #queue: LinkSenderQueue;
  readonly #syncs: SliceSyncs;
  readonly #tail: Tail;
  readonly #sliceSender: SliceSender;
  /** Shards for which the other end has not yet sent its choice. */
  readonly #unanswered: Set<ShardName>;
  /** The filters to use next. */
  #nextFilters: LinkFilters | undefined;
  #isTailsTurn = false;
  /** The last position sent. Everything up to it was sent first. */
  #sent: Revision | undefined;
  #sentMs: number;
  #resynced = 0;
  /** Slices of the shards that the other end chose since the last turn of the event loop. */
  #chosen = 0;

  constructor(
    parts: LinkSenderParts,
    { to, filters, receiver }: Readonly<{ to: Neighbour; filters: LinkFilters; receiver: Receiver }>,
    options: LinkSenderOptions,
  ) {
    const { store, history, isSynced, canArrive, unknown, clock, random } = parts;
    const known = store.state;
    this.#parts = parts;
    this.#options = options;
    this.#to = to;
    const resumed = locatePosition(store.revisions, receiver.position);
    if (resumed === undefined && receiver.position !== '') parts.log.info('link.position-unknown', { to, position: receiver.position });
    const notify = (): void => this.#notifier.notify();
    this.#sent = resumed;
    const isWanted = ({ shard }: Key): boolean => this.#syncs.hasShard(shard);
    this.#tail = new Tail(
      { history, revisions: store.revisions, commits: store.commits, isWanted, notify },
      resumed ?? store.revisions.published,
    );
    this.#queue = new LinkSenderQueue({ clock, tooLarge: (slice, outgoing) => this.#tooLarge(slice, outgoing) }, receiver, options);
    this.#syncs = new SliceSyncs(
      { known, isSynced, canArrive, unknown, published: () => store.revisions.published, clock, random, notify },
      { to, filter: filters.towards(to), held: receiver.held, canResume: resumed !== undefined },
    );
    const progress = (): void => void this.#progress(true);
    const resync: SliceSenderParts['resync'] = (sync, afterMs, reason) => this.#resync(sync, afterMs, reason);
    this.#sliceSender = new SliceSender({ store, queue: this.#queue, syncs: this.#syncs, tail: this.#tail, progress, resync });
    if (resumed === undefined && receiver.held.isCurrentWithAny) this.#forgetPosition();
    this.#claims = new OutgoingClaims({ ...parts, known, notify }, to);
    this.#unanswered = new Set([...known.shards].filter(({ via }) => flows(via, to)).map(({ shard }) => shard));
    this.#reports = new OutgoingReports({
      ...parts,
      isComplete: () => parts.isComplete(to),
      crossesWhole: (slice) => this.#syncs.filter.letsAll(slice) && this.#syncs.of(slice)?.isRefused !== true,
      published: () => store.revisions.published,
      marked: this.#syncs.marked,
    });
    this.#sentMs = clock.now();
    this.#answer();
  }

  get progress(): SendingStatus {
    const { published } = this.#parts.store.revisions;
    return { ...this.#syncs.tally, behind: published - this.#tail.position, lagMs: this.#queue.lagMs, resynced: this.#resynced };
  }

  async run(signal: AbortSignal): Promise<void> {
    const subscription = this.#parts.store.state.follow(({ shards, slices }) => {
      for (const { shard } of shards) this.#claims.add(shard);
      for (const { shard } of shards) this.#syncs.followShard(shard);
      this.#syncs.followSlices(slices.map(({ slice }) => slice));
      this.#notifier.notify();
    });
    try {
      await this.#sendClaims();
      await this.#syncs.open(this.#parts.turn);
      const { slices, current, behind } = this.progress;
      this.#parts.log.info('link.sending', { slices, current, behind });
      await Promise.all([this.#pump(signal), this.#checkDigests(signal), this.#watchAcks(signal)]);
    } finally {
      subscription.cancel();
      this.#claims.close();
      this.#tail.close();
      this.#syncs.close();
    }
  }

  /** Returns false if the number was never sent. */
  acknowledge({ sequence, credit }: FrameOf<'ack'>): boolean {
    const isSent = this.#queue.acknowledge(sequence, credit);
    this.#notifier.notify();
    return isSent;
  }

  refused({ sequence, reason, message }: FrameOf<'refuse'>): void {
    const refused = this.#queue.refused(sequence);
    if (refused?.sync === undefined) return;
    refused.sync.isRefused = true;
    this.#syncs.marked.add(refused.sync);
    const why = { reason: shown(reason), message: shown(message) };
    this.#parts.boundedLog.warn('link.refused', { ...logFieldsOf(refused.sync.slice, refused.outgoing), ...why });
  }

  resync({ slice, reason }: FrameOf<'resync'>): void {
    const sync = this.#syncs.of(slice);
    if (sync === undefined || sync.isToBeSynced) return;
    this.#resynced += 1;
    this.#resync(sync, sync.pace.wantedMs(), shown(reason));
    this.#notifier.notify();
  }

  report(heartbeat: number): void {
    this.#reports.request(heartbeat);
    this.#notifier.notify();
  }

  learnSummary(summary: FrameOf<'summary'>): void {
    this.#sliceSender.learnSummary(summary);
    this.#notifier.notify();
  }

  /**
   * The other end reports slices of a shard whose via is this cache. Returns false if it reports
   * too many.
   */
  receiveInventory(held: readonly InventorySlice[]): boolean {
    this.#notifier.notify();
    return this.#syncs.receiveInventory(held);
  }

  unknownOf(shard: ShardName): Iterable<Slice> {
    return this.#syncs.unknownOf(shard);
  }

  followType(resource: Resource): void {
    this.#syncs.followType(resource);
  }

  onFreshnessChange(change: FreshnessChange): void {
    this.#syncs.onFreshnessChange(change);
    this.#notifier.notify();
  }

  /**
   * Records the other end's choice for a shard: whether this cache is its via, and which claim it
   * knows. Resolves when the caller may pass the next choice.
   */
  async learnChoice(claim: FrameOf<'claim'>): Promise<void> {
    const { shard } = claim;
    const afterMs = await this.#syncs.learnChoice(claim, this.#parts.turn);
    if (afterMs > 0)
      this.#parts.boundedLog.info('link.resync', { shard, reason: 'the other end takes the shard from this cache again', afterMs });
    this.#answer(shard);
    this.#notifier.notify();
    if (!this.#syncs.hasShard(shard)) return;
    // Count its slices, because each got a slice sync or was checked.
    this.#chosen += Math.max(slicesPerShard, this.#syncs.countOf(shard));
    if (this.#chosen < slicesPerTurn) return;
    this.#chosen = 0;
    await this.#parts.turn();
  }

  sendClaim(shard: ShardName): void {
    this.#claims.add(shard);
    this.#notifier.notify();
  }

  changeFilters(filters: LinkFilters): void {
    this.#nextFilters = filters;
    this.#notifier.notify();
  }

  async #pump(signal: AbortSignal): Promise<void> {
    const { connection, turn } = this.#parts;
    while (!signal.aborted) {
      const seen = this.#notifier.notified;
      if (this.#nextFilters !== undefined) await this.#followFilters(this.#nextFilters);
      await this.#sendClaims();
      if (this.#send()) {
        await turn();
        await connection.drained();
      } else if (!this.#queue.isEmpty || !(await this.#fillUp())) await this.#notifier.after(seen, signal);
      else if (this.#queue.isEmpty) await turn();
    }
  }

  /**
   * Fills the queue, so that small frames of several slices are sent together. Returns false if
   * there is nothing to send until something changes.
   */
  async #fillUp(): Promise<boolean> {
    for (let queued = -1; queued < this.#queue.length && this.#queue.isShort;) {
      queued = this.#queue.length;
      if (!(await this.#fill())) return queued > 0;
    }
    return true;
  }

  async #followFilters(filters: LinkFilters): Promise<void> {
    this.#nextFilters = undefined;
    await this.#syncs.changeFilter(filters.towards(this.#to), this.#parts.turn);
    // Under the new policies the other end may accept claims that it ignored.
    this.#claims.addAll();
  }

  #send(): boolean {
    for (let sent = 0; sent < framesPerTurn; sent++) {
      const frame = this.#queue.take();
      if (frame === undefined) return sent > 0;
      this.#parts.connection.send(frame);
      if (this.#parts.connection.bufferedBytes >= turnBytesMax) return true;
    }
    return true;
  }

  #resync(sync: SliceSync, afterMs: number, reason: string): void {
    this.#parts.log.info('link.resync', { slice: formatSlice(sync.slice), reason, afterMs });
    this.#syncs.makeDue(sync, afterMs);
  }

  /** Returns false if there is nothing to send until something changes. */
  async #fill(): Promise<boolean> {
    try {
      if (this.#sliceSender.invalidate() || this.#sliceSender.end() || this.#report()) return true;
      this.#isTailsTurn = !this.#isTailsTurn;
      if (this.#isTailsTurn && this.#tail.isBehind) return await this.#fillFromTail();
      if (await this.#sliceSender.walk()) return true;
      if (this.#tail.isBehind) return await this.#fillFromTail();
      return this.#sliceSender.digest() || this.#progress();
    } catch (error) {
      if (!(error instanceof Refused) || error.refusal.reason !== 'Expired') throw error;
      this.#parts.log.warn('link.behind-the-log', {
        to: this.#to,
        position: this.#tail.position,
        compacted: this.#parts.store.revisions.compacted,
      });
      this.#tail.jump(this.#parts.store.revisions.published);
      this.#syncs.makeAllDue();
      this.#forgetPosition();
      return true;
    }
  }

  async #fillFromTail(): Promise<true> {
    const { store } = this.#parts;
    const { changes, upTo } = await this.#tail.next();
    const filter = this.#syncs.filter;
    const moves = pathMovesIn(changes);
    const some = changes.filter(({ key }) => this.#syncs.of(key)?.sendsChanges === true);
    // If no change is left out, pass the same array on: its filtered changes may already be
    // computed for another link.
    const sent = some.length === changes.length ? changes : some;
    const filtered = sent.length === 0 ? [] : await filterChanges(sent, { filter, paths: store.paths, at: upTo, moves });
    for (const { key } of sent) this.#syncs.of(key)?.walk?.touch(key);
    const bySync = new Map<SliceSync, Outgoing[]>();
    for (const { change, before: left, after } of filtered) {
      const sync = this.#syncs.of(change.key);
      if (sync?.sendsChanges !== true) continue;
      sync.walk?.apply(change, left, after);
      entryOf(bySync, sync, (): Outgoing[] => []).push(outgoingChange(change, after));
    }
    // No key occurs twice in a chunk (A2 in tail.ts), so the order is free. With deletes last, the
    // items of a slice make two frames.
    for (const [sync, items] of bySync) this.#queue.objects(sync, items.toSorted(deletesLast));
    for (const { key, ...moved } of moves.byPlace.values()) await this.#sliceSender.movePath(key, moved);
    if (!this.#queue.isEmpty) this.#progress(true);
    return true;
  }

  /** Returns false if no report is due, or the tail is not far enough for it yet. */
  #report(): boolean {
    const hasLooked = this.#reports.check();
    const report = this.#reports.take(this.#tail.position);
    if (report !== undefined) this.#queue.report(report);
    return hasLooked || report !== undefined;
  }

  /**
   * Sends the position, after everything up to it. By default a position is due once none was sent
   * for `progressIntervalMs`.
   */
  #progress(isDue = this.#parts.clock.now() - this.#sentMs >= this.#options.progressIntervalMs): boolean {
    const { position } = this.#tail;
    if (!isDue || position === this.#sent) return false;
    this.#sliceSender.invalidate(Infinity);
    const text = this.#parts.store.revisions.formatPosition(position);
    this.#sentMs = this.#parts.clock.now();
    this.#sent = position;
    this.#queue.position(text);
    return true;
  }

  /**
   * Sends an empty position. No slice at the other end is then current with this link, even when
   * the position moves on.
   */
  #forgetPosition(): void {
    this.#sent = undefined;
    this.#queue.position('');
  }

  async #sendClaims(): Promise<void> {
    while (this.#claims.send()) await this.#parts.turn();
  }

  #answer(shard?: ShardName): void {
    if (shard !== undefined) this.#unanswered.delete(shard);
    if (this.#unanswered.size === 0) this.#reports.allKnown();
  }

  async #checkDigests(signal: AbortSignal): Promise<void> {
    for (;;) {
      await pause(this.#parts.clock, this.#options.digestIntervalMs, signal);
      if (signal.aborted) return;
      this.#sliceSender.checkAll();
      this.#notifier.notify();
    }
  }

  async #watchAcks(signal: AbortSignal): Promise<void> {
    const { clock, connection } = this.#parts;
    const acks = new AckWatch(clock, this.#options);
    while (!signal.aborted) {
      if (acks.isOverdue(this.#queue))
        return connection.close('timeout', `the other end acknowledged nothing for ${this.#options.ackTimeoutMs / 1000} s`);
      await pause(clock, acksCheckMs, signal);
    }
  }

  #tooLarge(slice: Slice, outgoing: Outgoing): void {
    const sync = this.#syncs.of(slice);
    if (sync !== undefined) {
      sync.isRefused = true;
      this.#syncs.marked.add(sync);
    }
    this.#parts.boundedLog.warn('link.too-large', logFieldsOf(slice, outgoing));
  }
}

function deletesLast(a: Outgoing, b: Outgoing): number {
  return Number(a.kind === 'delete') - Number(b.kind === 'delete');
}
