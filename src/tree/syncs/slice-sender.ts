/**
 * Sends whole slices: their syncs, their ends and their digests, a page at a time.
 *
 * S1 At most `syncsMax` slices are read side by side, a page each in turn, so that a large slice
 *    does not delay the others. A slice is read for its digest only when there is nothing else to
 *    do.
 * S2 A slice of many objects that the other end may already have is compared before its sync. A
 *    cache that reconnects usually has the objects.
 * S3 Objects that declare types are sent before objects of declared types. Otherwise the other end
 *    would have to park the latter.
 */
import { inBuckets, noBuckets } from '../../domain/slices/buckets.js';
import { emptyDigest, formatDigest } from '../../domain/slices/digest.js';
import type { MovedPath } from '../../domain/change.js';
import { Refused } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import { Line } from '../../domain/base/queues.js';
import type { Snapshot, Store } from '../../domain/store-port.js';
import { scopeOfSlice } from '../../domain/scope.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import { Comparisons } from './comparisons.js';
import type { SliceSyncs } from './slice-syncs.js';
import { filterObjects } from '../filters/filtered-changes.js';
import { outgoingChange, outgoingObject, type LinkSenderQueue } from '../links/link-sender-queue.js';
import type { FrameOf } from '../../frames/frame.js';
import type { SliceSync } from './slice-sync.js';
import { SliceWalk } from './slice-walk.js';
import type { Tail } from '../links/tail.js';

export type SliceSenderParts = Readonly<{
  store: Pick<Store, 'objects' | 'revisions' | 'paths' | 'state'>;
  queue: LinkSenderQueue;
  syncs: SliceSyncs;
  tail: Tail;
  /** Sends the position, if it has moved. */
  progress: () => void;
  /** Makes the slice due for a resync, after a while. */
  resync: (sync: SliceSync, afterMs: number, reason: string) => void;
}>;

const syncsMax = 4;
const stalePerTurn = 256;
/** A slice of which nothing crosses needs no reading, so one turn may begin many of them. */
const begunPerTurn = 256;

export class SliceSender {
  readonly #parts: SliceSenderParts;
  readonly #syncing: SliceSync[] = [];
  readonly #comparisons: Comparisons;
  readonly #digestsDue = new Line<SliceSync>();
  /** The slice whose digest a walk computes. */
  #digesting: Readonly<{ sync: SliceSync; walk: SliceWalk }> | undefined;

  constructor(parts: SliceSenderParts) {
    this.#parts = parts;
    this.#comparisons = new Comparisons(parts);
  }

  /**
   * Sends the `end` of a slice that is due for it. Returns false if none is due or left to check.
   */
  end(): boolean {
    const { syncs, queue, store, tail, progress } = this.#parts;
    const due = syncs.takeDue(tail.position);
    if (due === undefined) return syncs.hasDue(tail.position);
    // A current slice resumes from the position, so the position must first cover everything that
    // the sync has sent.
    progress();
    const { sync, term } = due;
    const { slice, filterHash } = sync;
    const revision = store.revisions.format(tail.position);
    const isFirst = sync.phase === 'sent';
    const { buckets } = sync;
    const compared = isFirst && buckets !== undefined ? { buckets } : {};
    queue.frame(sync, (sequence, count) => ({ kind: 'end', sequence, slice, revision, count, filterHash, ...compared, term }));
    sync.step('ended');
    sync.endedFor = term;
    if (!isFirst) return true;
    sync.pace.synced();
    this.#digestsDue.add(sync);
    return true;
  }

  /**
   * Sends `begin` for at most `max` slices that the other end must mark stale. All of them must be
   * sent before the position passes their changes. Returns false if there is none.
   */
  invalidate(max = stalePerTurn): boolean {
    const { syncs, queue, store, tail } = this.#parts;
    const revision = store.revisions.format(tail.position);
    const invalidated = syncs.takeStale(max);
    for (const sync of invalidated) queue.frame(sync, (sequence) => ({ kind: 'begin', sequence, slice: sync.slice, revision }));
    return invalidated.length > 0;
  }

  /**
   * Reads a page of a slice that is being synced, or whose digest is computed. Returns false if
   * there is nothing to read.
   */
  async walk(): Promise<boolean> {
    const { syncs, tail } = this.#parts;
    if (this.#continueCompared()) return true;
    let begun = 0;
    for (; this.#syncing.length < syncsMax && begun < begunPerTurn; begun += 1) {
      const isDeclaring = this.#syncing.some(({ declaresTypes }) => declaresTypes);
      const sync = syncs.takeWaiting(tail.position, isDeclaring ? 'declaring' : undefined);
      if (sync === undefined) break;
      if (this.#comparisons.isFor(sync)) {
        this.#comparisons.requestSummary(sync, this.#snapshot(sync));
        this.#syncing.push(sync);
      } else this.#begin(sync);
    }
    const sync = this.#syncing.shift();
    if (sync !== undefined) {
      if (sync.phase === 'syncing' && (await this.#page(sync))) this.#syncing.push(sync);
      if (sync.phase === 'comparing' && (await this.#comparisons.page(sync))) this.#syncing.push(sync);
      return true;
    }
    if (this.#digesting === undefined) return begun > 0;
    const { sync: checked, walk } = this.#digesting;
    if (checked.walk !== walk || !(await this.#page(checked))) this.#digesting = undefined;
    return true;
  }

  /**
   * Sends the digest of a slice that is due, or starts to read the slice for it. Returns false if
   * none is due. The caller must have sent all changes.
   */
  digest(): boolean {
    const { syncs, store, queue } = this.#parts;
    const due = this.#digestsDue;
    for (let left = due.size; left > 0; left -= 1) {
      const sync = due.first;
      if (sync === undefined) return false;
      const { slice } = sync;
      // Until the other end has acknowledged everything of the slice, this end does not know which
      // objects the other end refuses.
      if (queue.isUnderWay(sync)) {
        due.passFirst();
        continue;
      }
      due.delete(sync);
      if (syncs.of(slice) !== sync || sync.phase !== 'current' || sync === this.#digesting?.sync) continue;
      const sum = sync.walk?.sum;
      sync.closeWalk();
      if (sync.isRefused) continue;
      if (sum !== undefined) this.#sendDigest(sync, formatDigest(sum));
      else if (syncs.filter.letsAll(slice)) this.#sendDigest(sync, store.state.slice(slice)?.digest ?? formatDigest(emptyDigest));
      else if (!syncs.filter.covers(slice)) this.#sendDigest(sync, formatDigest(emptyDigest));
      else this.#check(sync);
      return true;
    }
    return false;
  }

  learnSummary(summary: FrameOf<'summary'>): void {
    this.#comparisons.learn(summary);
  }

  checkAll(): void {
    for (const sync of this.#parts.syncs.all()) this.#digestsDue.add(sync);
  }

  /**
   * The canonical path of a logical cluster has moved. Puts the objects that cross only now, and
   * deletes those that crossed only before.
   */
  async movePath({ shard, cluster }: Key, { before, after }: MovedPath): Promise<void> {
    const { syncs, queue, store, tail } = this.#parts;
    const { filter } = syncs;
    for (const sync of [...syncs.ofShard(shard)].filter(({ sendsChanges, slice }) => sendsChanges && filter.needsPath(slice))) {
      sync.walk?.giveUpSum();
      const snapshot = store.objects.snapshot({ ...scopeOfSlice(sync.slice), cluster }, tail.position);
      for await (const objects of snapshotPages(snapshot)) {
        const flipped = objects.filter((object) => filter.lets(object, before) !== filter.lets(object, after));
        for (const { key } of flipped) sync.walk?.touch(key);
        const outgoing = flipped.map((object) => outgoingChange(object, filter.lets(object, after) ? object : undefined));
        if (sync.sendsChanges) queue.objects(sync, outgoing);
      }
    }
  }

  #begin(sync: SliceSync): void {
    const { syncs, queue, store, tail } = this.#parts;
    const { slice } = sync;
    const { filter } = syncs;
    const isCovered = filter.covers(slice);
    const snapshot = isCovered ? this.#snapshot(sync) : undefined;
    const revision = store.revisions.format(tail.position);
    queue.frame(sync, (sequence) => ({ kind: 'begin', sequence, slice, revision }));
    sync.closeComparison();
    sync.isRefused = false;
    syncs.marked.add(sync);
    sync.buckets = undefined;
    sync.step('begun');
    if (snapshot !== undefined) return this.#open(sync, snapshot);
    sync.step('walked');
    syncs.mayBeDue(sync);
  }

  /**
   * Continues a slice whose comparison is decided. Returns false if there is none, or if `syncsMax`
   * slices are being read already.
   */
  #continueCompared(): boolean {
    const compared = this.#comparisons.take(this.#syncing.length < syncsMax);
    if (compared === undefined) return false;
    const { sync, outcome } = compared;
    if (outcome === 'unknown') {
      this.#begin(sync);
      return true;
    }
    const snapshot = outcome === noBuckets ? undefined : this.#snapshot(sync);
    sync.closeComparison();
    sync.buckets = outcome;
    sync.step(snapshot === undefined ? 'walked' : 'begun');
    if (snapshot === undefined) this.#parts.syncs.mayBeDue(sync);
    else this.#open(sync, snapshot);
    return true;
  }

  #open(sync: SliceSync, snapshot: Snapshot): void {
    sync.walk = new SliceWalk(snapshot, { sums: !this.#parts.syncs.filter.letsAll(sync.slice) });
    this.#syncing.push(sync);
  }

  #snapshot(sync: SliceSync): Snapshot {
    const { syncs, store, tail } = this.#parts;
    try {
      return store.objects.snapshot(scopeOfSlice(sync.slice), tail.position);
    } catch (error) {
      syncs.makeDue(sync);
      throw error;
    }
  }

  #check(sync: SliceSync): void {
    const { store, tail } = this.#parts;
    const walk = new SliceWalk(store.objects.snapshot(scopeOfSlice(sync.slice), tail.position), { sums: true });
    sync.walk = walk;
    this.#digesting = { sync, walk };
  }

  /** Reads one page. Returns false if there are no more. */
  async #page(sync: SliceSync): Promise<boolean> {
    const { syncs, queue, store, tail } = this.#parts;
    const { walk, slice } = sync;
    if (walk === undefined) return false;
    const page = await this.#read(sync, walk);
    if (page === undefined || sync.walk !== walk) return false;
    const filtered = await filterObjects(page, { slice, filter: syncs.filter, paths: store.paths, at: tail.position });
    if (sync.walk !== walk) return false;
    const unsent = filtered.filter((object) => walk.add(object));
    const isSyncing = sync.phase === 'syncing';
    const differs = sync.buckets === undefined ? () => true : inBuckets(sync.buckets);
    if (isSyncing) queue.objects(sync, unsent.filter(({ key }) => differs(key)).map(outgoingObject));
    if (walk.isOverrun) {
      if (isSyncing) this.#parts.resync(sync, sync.pace.failedMs(), 'too many of its keys have changed meanwhile');
      else sync.closeWalk();
      return false;
    }
    if (!walk.isThrough) return true;
    if (isSyncing) {
      sync.step('walked');
      syncs.mayBeDue(sync);
      return false;
    }
    if (walk.sum !== undefined && !sync.isRefused) this.#sendDigest(sync, formatDigest(walk.sum));
    sync.closeWalk();
    return false;
  }

  /**
   * Returns undefined if the snapshot was held for too long. A sync then starts over after a while.
   */
  async #read(sync: SliceSync, walk: SliceWalk) {
    try {
      return await walk.page();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (sync.walk !== walk) return undefined;
      if (sync.phase === 'syncing') this.#parts.resync(sync, sync.pace.failedMs(), 'its snapshot was held for too long');
      else sync.closeWalk();
      return undefined;
    }
  }

  #sendDigest(sync: SliceSync, value: string): void {
    const { slice } = sync;
    this.#parts.queue.frame(sync, (sequence) => ({ kind: 'digest', sequence, slice, value }));
  }
}
