/**
 * One slice on its way to a cache: its source, the mutations that wait to be sent, and the state of
 * its sync.
 *
 *  waiting ──open──▶ syncing ──end acknowledged──▶ synced
 *     ▲                 ▲───────begin sent───────────┘
 *     └── close ────────┴────────────────────────────┘
 *
 * L1 Mutations that the source reported before its first begin are not sent.
 * L2 A slice is synced once the end of its last sync is acknowledged, if neither the begin nor the
 *    end was refused.
 * L3 A source is opened only once its previous reading has stopped.
 * L4 If the connection is lost during the sync of a logical cluster, the whole slice is resynced.
 *
 * Bounds: the sender requests a batch only when nothing is pending. So at most one batch waits, and
 * the unacknowledged mutations of a lost connection. A slice is resynced if its source ends or
 * fails, its begin or end was refused, or the cache asks for it. Repeated resyncs wait.
 */
import type { Log } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { Frame, PushedKey, SliceFreshness } from '../frames/frame.js';
import { batchFrame, coalesce, cutBatch, outgoingBytes, outgoingKey, type Batch, type BatchBounds, type Pending } from './batch.js';
import { LackingObjects } from '../domain/slices/lacking-objects.js';
import type { SliceKnowledge } from './resume.js';
import { ResyncPace } from './resync-pace.js';
import type { SliceProgress } from './sender-state.js';
import type { Outgoing, SliceSource } from './source.js';
import { SyncsUnderWay } from './syncs-under-way.js';
import type { Tally } from './window.js';

export type SliceFeedParts = Readonly<{
  clock: Clock;
  random: () => number;
  log: Log;
  /**
   * Called when the source has sent something or stopped, or a wait is over: there may be work for
   * the slice.
   */
  changed: (feed: SliceFeed) => void;
}>;
export type SliceFeedBounds = Readonly<{ refusalsLoggedMax: number }>;

/**
 * How long a slice of an undeclared type waits before it is tried again. A cache requests the slice
 * as soon as its type is declared; the wait is for caches that do not.
 */
const undeclaredMs = 600_000;

export class SliceFeed {
  readonly slice: Slice;
  /** As a `formatSlice` text. */
  readonly name: string;
  /** The slice that must be synced first, as a `formatSlice` text. */
  readonly after: string | undefined;
  readonly #source: SliceSource;
  readonly #parts: SliceFeedParts;
  readonly #bounds: SliceFeedBounds;
  readonly #pace: ResyncPace;

  #reading: SourceReading | undefined;
  #released: Promise<void> = Promise.resolve();
  #isReleased = true;
  #cancelReopening: (() => void) | undefined;
  /** Whether the slice waits for its type to be declared at the cache. */
  #isUndeclared = false;

  #pending: Pending[] = [];
  /** The number of the last sync that the source reported, and of the first one of this reading. */
  #sync = 0;
  #firstSync = 1;
  /** The number of the last sync whose begin was sent, and that may still complete. */
  #syncSent = 0;
  #syncedAt: string | undefined;
  #refused = 0;
  #refusedSinceBegin = 0;
  readonly #lacking = new LackingObjects();
  readonly #syncs = new SyncsUnderWay();
  /** The number of mutations that the source has reported, which gives `order`. */
  #reportedCount = 0;

  constructor(
    { slice, source, after }: Readonly<{ slice: Slice; source: SliceSource; after: Slice | undefined }>,
    parts: SliceFeedParts,
    bounds: SliceFeedBounds,
  ) {
    this.slice = slice;
    this.name = formatSlice(slice);
    this.after = after === undefined ? undefined : formatSlice(after);
    this.#source = source;
    this.#parts = parts;
    this.#bounds = bounds;
    this.#pace = new ResyncPace(parts);
  }

  get syncedAt(): string | undefined {
    return this.#syncedAt;
  }

  get refused(): number {
    return this.#refused;
  }

  get hasPending(): boolean {
    return this.#pending.length > 0;
  }

  get mayOpen(): boolean {
    return this.#reading === undefined && this.#isReleased && this.#cancelReopening === undefined;
  }

  get mayRead(): boolean {
    return this.#reading !== undefined && !this.#reading.isReading && !this.hasPending;
  }

  knowledge(): SliceKnowledge {
    return { open: this.#reading !== undefined, syncedAt: this.#syncs.hasOpenClusters ? undefined : this.#syncedAt };
  }

  progress(nowMs: number, sent: Tally | undefined): SliceProgress {
    const { slice, connected, synced, lagMs, whole } = this.freshness(nowMs, sent);
    return {
      slice,
      phase: synced ? 'synced' : this.#reading === undefined ? 'waiting' : 'syncing',
      connected,
      objects: this.#syncs.objects,
      unacknowledged: { mutations: sent?.mutations ?? 0, bytes: sent?.bytes ?? 0 },
      refused: this.#refused,
      lagMs,
      whole,
    };
  }

  freshness(nowMs: number, sent: Tally | undefined): SliceFreshness {
    const synced = this.#syncedAt !== undefined;
    const oldestMs = Math.min(sent?.oldestMs ?? nowMs, this.#pending[0]?.sinceMs ?? nowMs, this.#source.waitingSinceMs ?? nowMs);
    return {
      slice: this.slice,
      connected: this.#source.connected,
      synced,
      lagMs: Math.max(0, nowMs - oldestMs),
      whole: synced && !this.#syncs.areUnderWay && !this.#lacking.lacks(this.slice),
    };
  }

  open(): void {
    try {
      this.#reading = new SourceReading(this.#source);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Asks the source for its next batch; `changed` is called once it has arrived. */
  read(): void {
    const reading = this.#reading;
    if (reading === undefined) return;
    const heard = async (): Promise<void> => {
      try {
        const batch = await reading.read();
        if (reading !== this.#reading) return;
        if (batch === undefined) throw new CacheError('the source has ended');
        this.#enqueue(batch);
      } catch (error) {
        if (reading === this.#reading) this.#fail(error);
      }
      this.#parts.changed(this);
    };
    void heard();
  }

  /**
   * Handles the cache's request for a resync. If the source is not open, a sync will follow anyway.
   */
  resync(reason: string): void {
    if (this.#isUndeclared) {
      void this.close();
      this.#parts.changed(this);
    }
    if (this.#reading === undefined) return;
    const afterMs = this.#pace.wantedMs();
    this.#parts.log.info('sender.resync', { slice: this.name, reason, afterMs });
    this.#reopen(afterMs);
  }

  /**
   * Stops reading and drops the pending mutations, so that the slice starts again with a sync.
   * Resolves once the source has stopped.
   */
  close(): Promise<void> {
    this.#cancelReopening?.();
    this.#cancelReopening = undefined;
    this.#isUndeclared = false;
    this.#pending = [];
    this.#firstSync = this.#sync + 1;
    this.#syncSent = 0;
    this.#syncedAt = undefined;
    this.#syncs.clear();

    const reading = this.#reading;
    this.#reading = undefined;
    if (reading === undefined) return this.#released;
    this.#isReleased = false;
    this.#released = reading.close().finally(() => {
      this.#isReleased = true;
      this.#parts.changed(this);
    });
    return this.#released;
  }

  cut(bounds: BatchBounds): Batch {
    return cutBatch(this.slice, this.#pending, bounds);
  }

  /** Sends the batch that `cut` chose; returns undefined if there is nothing to send. */
  send({ taken, sent, tooLarge }: Batch, number: (sent: readonly Pending[]) => number): Frame | undefined {
    this.#pending.splice(0, taken);
    for (const item of tooLarge) this.refuse(item, { reason: 'RequestEntityTooLarge', message: 'it is larger than the cache accepts' });
    const first = sent[0];
    if (first === undefined) return undefined;

    if (first.outgoing.kind === 'begin') {
      this.#syncSent = first.sync;
      this.#syncedAt = undefined;
      this.#refusedSinceBegin = 0;
      this.#lacking.clear(this.slice);
    }
    const { outgoing } = first;
    if (outgoing.kind === 'clusterBegin') this.#lacking.clearCluster(this.slice, outgoing.cluster);
    this.#syncs.send(sent);
    return batchFrame(sent, { slice: this.slice, sequence: number(sent), objects: this.#syncs.objectsOf(outgoing) });
  }

  /** Queues the unacknowledged mutations of a lost connection before the pending ones. */
  giveBack(items: readonly Pending[]): void {
    // Forgets refusals of these mutations, because the cache will decide them again.
    for (const { outgoing, order } of items) this.#recordAccepted(outgoingKey(outgoing), order + 1);
    this.#pending = [...items.filter(({ sync }) => sync >= this.#firstSync), ...this.#pending];
  }

  acknowledge(item: Pending, cacheId: string): void {
    const { outgoing, sync, order } = item;
    // A put without a body only says that the object exists; the cache still lacks this version.
    const isThere = outgoing.kind !== 'put' || outgoing.object.body !== undefined;
    if (isThere) this.#recordAccepted(outgoingKey(outgoing), order);
    else this.#recordRefused(item, outgoing.object);
    this.#syncs.acknowledge(item);
    if (outgoing.kind !== 'end' || sync !== this.#syncSent) return;
    this.#syncedAt = cacheId;
    this.#pace.synced();
    this.#parts.log.info('sender.synced', { slice: this.name, objects: this.#syncs.objects, refused: this.#refusedSinceBegin });
  }

  refuse(item: Pending, { reason, message }: Readonly<{ reason: string; message: string }>): void {
    const { outgoing, sync } = item;
    this.#refused += 1;
    this.#refusedSinceBegin += 1;
    const key = outgoingKey(outgoing);
    if (key !== undefined) this.#recordRefused(item, key);
    if (key === undefined && sync === this.#syncSent) {
      const isUndeclared = reason === 'NotFound';
      this.#reopen(isUndeclared ? undeclaredMs : this.#pace.failedMs());
      this.#isUndeclared = isUndeclared;
    }
    if (this.#refusedSinceBegin > this.#bounds.refusalsLoggedMax) return;
    const place = key === undefined ? {} : { cluster: key.cluster, namespace: key.namespace, name: key.name };
    this.#parts.log.warn('sender.refused', { slice: this.name, sent: outgoing.kind, ...place, reason, message });
  }

  /** Ignores refusals from an older sync, because the newer sync sends the object again. */
  #recordRefused({ sync, order }: Pending, key: PushedKey): void {
    if (sync === this.#syncSent && !this.#syncs.isOutdated(key.cluster, order)) this.#lacking.add(this.slice, key, order);
  }

  #recordAccepted(key: PushedKey | undefined, order: number): void {
    if (key !== undefined) this.#lacking.remove(this.slice, key, order);
  }

  #enqueue(batch: readonly Outgoing[]): void {
    const sinceMs = this.#parts.clock.now();
    for (const outgoing of coalesce(batch)) {
      if (outgoing.kind === 'begin') this.#sync += 1;
      const [sync, order] = [this.#sync, this.#reportedCount + 1];
      const syncing = this.#syncs.record(outgoing, order);
      if (sync < this.#firstSync) continue;
      this.#reportedCount = order;
      this.#pending.push({ outgoing, bytes: outgoingBytes(outgoing), sinceMs, sync, order, syncing });
    }
  }

  #fail(error: unknown): void {
    const afterMs = this.#pace.failedMs();
    this.#parts.log.warn('sender.source.failed', { slice: this.name, error, afterMs });
    this.#reopen(afterMs);
  }

  #reopen(afterMs: number): void {
    void this.close();
    if (afterMs === 0) return;
    this.#cancelReopening = this.#parts.clock.after(afterMs, () => {
      this.#cancelReopening = undefined;
      this.#isUndeclared = false;
      this.#parts.changed(this);
    });
  }
}

/** One reading of a source, from opening to release. It asks for one batch at a time. */
class SourceReading {
  readonly #abort = new AbortController();
  readonly #batches: AsyncIterator<readonly Outgoing[]>;
  #isReading = false;

  constructor(source: SliceSource) {
    this.#batches = source.open(this.#abort.signal)[Symbol.asyncIterator]();
  }

  get isReading(): boolean {
    return this.#isReading;
  }

  /** The next batch; undefined if the source has ended. */
  async read(): Promise<readonly Outgoing[] | undefined> {
    this.#isReading = true;
    try {
      const { done, value } = await this.#batches.next();
      return done === true ? undefined : value;
    } finally {
      this.#isReading = false;
    }
  }

  async close(): Promise<void> {
    this.#abort.abort();
    try {
      await this.#batches.return?.();
    } catch {
      // Ignores errors of a source that was aborted.
    }
  }
}
