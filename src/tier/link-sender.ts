/**
 * The sending half of a link: sends the cache at the other end what crosses to it, from the change log and, where that is not
 * enough, as syncs.
 *
 *   tail   ──────●───────▶ changes of slices that cross, then `progress` ┐ by turns, a chunk or a page each,
 *   walks  [begin  page  page …  end]  of slices to be synced            ┘ when there is credit
 *
 * Q1 Nothing waits here for a slow link: what it has not accepted is read later, from the log. Memory: the credit, a chunk or page and small
 *    ones before it, and what the tail keeps of commits.
 * Q2 `end` is sent only while the slice is synced here; everything else of a slice is sent as it comes.
 * Q3 A claim goes before everything of its shard.
 * Q4 A link behind the log resyncs everything: never a gap.
 */
import { shown } from '../diagnostics/shown.js';
import { Refused } from '../domain/errors.js';
import type { Key } from '../domain/key.js';
import { pause } from '../domain/pause.js';
import type { Resource } from '../domain/resource.js';
import type { Revision } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import { flows, type Neighbour } from '../domain/via.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { SendingStatus } from '../domain/status.js';
import type { FrameOf, HeldSlice } from '../frames/frame.js';
import { AckWatch } from '../sender/ack-watch.js';
import { Notifier } from '../sender/notifier.js';
import type { Outgoing } from '../sender/source.js';
import { SliceSyncs, slicesPerTurn } from './slice-syncs.js';
import { filterChanges } from './filtered-changes.js';
import type { LinkFilters } from './link-filters.js';
import { OutgoingClaims } from './outgoing-claims.js';
import { OutgoingReports } from './outgoing-reports.js';
import type { LinkSenderOptions, LinkSenderParts, Receiver } from './link-sender-options.js';
import { LinkSenderQueue, placeOf } from './link-sender-queue.js';
import { pathMovesIn } from './path-moves.js';
import { locatePosition } from './position.js';
import { SliceSender, type SliceSenderParts } from './slice-sender.js';
import type { SliceSync } from './slice-sync.js';
import { Tail } from './tail.js';
import type { News } from './freshness-news.js';
import { outgoingChange } from './outgoing-change.js';

/** Sent in one turn of the event loop: so many small frames, or large ones until the network is full. */
const framesPerTurn = 8;
const turnBytesMax = 512 * 1024;
const acksLookMs = 5_000;
/** A shard of few slices counts as so many. */
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
  /** Shards of which the other end has not yet sent whether it has them from here. */
  readonly #unanswered: Set<ShardName>;
  #filters: LinkFilters;
  #isTailsTurn = false;
  /** The last position that was sent: the other end has everything up to there. */
  #sent: Revision | undefined;
  /** When it was sent. */
  #sentMs: number;
  #haveFiltersChanged = false;
  #resynced = 0;
  /** Slices of shards that were chosen since the last turn of the event loop. */
  #chosen = 0;

  constructor(
    parts: LinkSenderParts,
    { to, filters, receiver }: Readonly<{ to: Neighbour; filters: LinkFilters; receiver: Receiver }>,
    options: LinkSenderOptions,
  ) {
    const { store, history, isSynced, canCome, unknown, clock, random } = parts;
    const known = store.state;
    this.#parts = parts;
    this.#options = options;
    this.#to = to;
    this.#filters = filters;
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
      { known, isSynced, canCome, unknown, published: () => store.revisions.published, clock, random, notify },
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
      crossesWhole: (slice) => this.#syncs.filter.isWhole(slice) && this.#syncs.of(slice)?.isRefused !== true,
      published: () => store.revisions.published,
      marked: this.#syncs.marked,
    });
    this.#sentMs = clock.now();
    this.#answer();
  }

  /** How far the sending half is. */
  get progress(): SendingStatus {
    const { published } = this.#parts.store.revisions;
    return { ...this.#syncs.tally, behind: published - this.#tail.position, lagMs: this.#queue.lagMs, resynced: this.#resynced };
  }

  /** Until `signal` is aborted. */
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

  /** False: it was never sent. */
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
    this.#parts.boundedLog.warn('link.refused', { ...placeOf(refused.sync.slice, refused.outgoing), ...why });
  }

  /** The other end asks for a resync. */
  resync({ slice, reason }: FrameOf<'resync'>): void {
    const sync = this.#syncs.of(slice);
    if (sync === undefined || sync.isToBeSynced) return;
    this.#resynced += 1;
    this.#resync(sync, sync.pace.wantedMs(), shown(reason));
    this.#notifier.notify();
  }

  /** The other end asks how fresh everything is. */
  report(heartbeat: number): void {
    this.#reports.ask(heartbeat);
    this.#notifier.notify();
  }

  /** What the other end holds of a slice that is to be synced. */
  learnSummary(summary: FrameOf<'summary'>): void {
    this.#sliceSender.learnSummary(summary);
    this.#notifier.notify();
  }

  /** The other end now holds slices of a shard that is ours to send. False: more than it may. */
  hold(held: readonly HeldSlice[]): boolean {
    this.#notifier.notify();
    return this.#syncs.hold(held);
  }

  /** Slices of a shard that the other end holds, and that are to be asked about. */
  unknownOf(shard: ShardName): Iterable<Slice> {
    return this.#syncs.unknownOf(shard);
  }

  /** The type is declared, or is so no more. */
  followType(resource: Resource): void {
    this.#syncs.followType(resource);
  }

  /** What another link brings or reports may have changed what is whole here. */
  hear(news: News): void {
    this.#syncs.hear(news);
    this.#notifier.notify();
  }

  /** The other end's choice for a shard: whether it takes it from here, and which claim it knows. Resolves once the next may be learned. */
  async learnChoice(claim: FrameOf<'claim'>): Promise<void> {
    const { shard } = claim;
    const afterMs = await this.#syncs.learnChoice(claim, this.#parts.turn);
    if (afterMs > 0) this.#parts.boundedLog.info('link.resync', { shard, reason: 'the other end takes it from here again', afterMs });
    this.#answer(shard);
    this.#notifier.notify();
    if (!this.#syncs.hasShard(shard)) return;
    // A slice sync was made for every slice of each of them, or looked at.
    this.#chosen += Math.max(slicesPerShard, this.#syncs.countOf(shard));
    if (this.#chosen < slicesPerTurn) return;
    this.#chosen = 0;
    await this.#parts.turn();
  }

  /** The claim of the shard has changed. */
  sendClaim(shard: ShardName): void {
    this.#claims.add(shard);
    this.#notifier.notify();
  }

  changeFilters(filters: LinkFilters): void {
    this.#filters = filters;
    this.#haveFiltersChanged = true;
    this.#notifier.notify();
  }

  async #pump(signal: AbortSignal): Promise<void> {
    const { connection, turn } = this.#parts;
    while (!signal.aborted) {
      const seen = this.#notifier.notified;
      if (this.#haveFiltersChanged) await this.#followFilters();
      await this.#sendClaims();
      if (this.#send()) {
        await turn();
        await connection.drained();
      } else if (!this.#queue.isEmpty || !(await this.#fillUp())) await this.#notifier.after(seen, signal);
      else if (this.#queue.isEmpty) await turn();
    }
  }

  /** Small frames of several slices go together. False: there is nothing to send until something changes. */
  async #fillUp(): Promise<boolean> {
    for (let queued = -1; queued < this.#queue.length && this.#queue.isShort;) {
      queued = this.#queue.length;
      if (!(await this.#fill())) return queued > 0;
    }
    return true;
  }

  async #followFilters(): Promise<void> {
    this.#haveFiltersChanged = false;
    await this.#syncs.changeFilter(this.#filters.towards(this.#to), this.#parts.turn);
    // It may accept claims now that it ignored.
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
    this.#syncs.want(sync, afterMs);
  }

  /** False: there is nothing to send until something changes. */
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
      this.#syncs.wantAll();
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
    // The very array, where possible: for the next link with this link filter it is known what of it crosses.
    const sent = some.length === changes.length ? changes : some;
    const filtered = sent.length === 0 ? [] : await filterChanges(sent, { filter, paths: store.paths, at: upTo, moves });
    for (const { key } of sent) this.#syncs.of(key)?.walk?.touch(key);
    const bySync = new Map<SliceSync, Outgoing[]>();
    for (const { change, left, came } of filtered) {
      const sync = this.#syncs.of(change.key);
      if (sync?.sendsChanges !== true) continue;
      sync.walk?.note(change, left, came);
      const before = bySync.get(sync);
      if (before === undefined) bySync.set(sync, [outgoingChange(change, came)]);
      else before.push(outgoingChange(change, came));
    }
    // No key stands twice in them: in this order they are two frames, not one each time a delete follows a put.
    for (const [sync, items] of bySync) this.#queue.objects(sync, items.toSorted(deletesLast));
    for (const { key, ...moved } of moves.byPlace.values()) await this.#sliceSender.movePath(key, moved);
    if (!this.#queue.isEmpty) this.#progress(true);
    return true;
  }

  /** False: none is due, or the tail is not so far yet. */
  #report(): boolean {
    const hasLooked = this.#reports.look();
    const report = this.#reports.take(this.#tail.position);
    if (report !== undefined) this.#queue.report(report);
    return hasLooked || report !== undefined;
  }

  /** Sends the position once what is before it was sent; where nothing crossed, now and then. */
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

  /** No slice at the other end is current with what it holds, nor may it count itself so when the position goes on. */
  #forgetPosition(): void {
    this.#sent = undefined;
    this.#queue.position('');
  }

  /** All that are due, before anything else is sent. */
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
      if (acks.isOverdue(this.#queue)) return connection.close('timeout', 'nothing was acknowledged for too long');
      await pause(clock, acksLookMs, signal);
    }
  }

  #tooLarge(slice: Slice, outgoing: Outgoing): void {
    const sync = this.#syncs.of(slice);
    if (sync !== undefined) {
      sync.isRefused = true;
      this.#syncs.marked.add(sync);
    }
    this.#parts.boundedLog.warn('link.too-large', placeOf(slice, outgoing));
  }
}

function deletesLast(a: Outgoing, b: Outgoing): number {
  return Number(a.kind === 'delete') - Number(b.kind === 'delete');
}
