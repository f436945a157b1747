/**
 * Compares large slices before their sync. The receiver may already hold all objects of a slice,
 * for example when a cache reconnects to its parent.
 *
 *   begin, compares ─┬▶ own snapshot, page by page ─┐
 *                    └▶ summary of the receiver ────┴▶ objects of differing buckets, then `end`
 *                                                      no summary: a new begin, then all objects
 *
 * D1 The snapshot is at the tail's position when the begin is queued. The receiver may have stored
 *    later changes of the tail before it makes its summary. If a bucket is equal nevertheless, the
 *    receiver holds the snapshot's objects of it, and none is sent.
 * D2 The sender reads the differing buckets again, at the tail's position by then. Their objects
 *    belong to the sync of that `begin`. So its `end` removes from these buckets each object that
 *    the receiver held at the `begin` and that was not sent since.
 * D3 Not compared: slices of fewer than `comparedMin` objects, slices whose objects declare types,
 *    and slices filtered by paths, because a path may move.
 */
import { noBuckets, type BucketSet } from '../../domain/slices/buckets.js';
import { Refused } from '../../domain/errors.js';
import type { Snapshot, Store } from '../../domain/store-port.js';
import type { FrameOf } from '../../frames/frame.js';
import type { SliceSyncs } from './slice-syncs.js';
import { filterObjects } from '../filters/filtered-changes.js';
import type { LinkSenderQueue } from '../links/link-sender-queue.js';
import { SliceComparison } from './slice-comparison.js';
import type { SliceSync } from './slice-sync.js';
import type { Tail } from '../links/tail.js';

export type ComparisonsParts = Readonly<{
  store: Pick<Store, 'revisions' | 'paths' | 'state'>;
  queue: LinkSenderQueue;
  syncs: SliceSyncs;
  tail: Tail;
}>;

/** Sending a slice of a few pages takes no longer than comparing it. */
const comparedMin = 128;

export class Comparisons {
  readonly #parts: ComparisonsParts;
  /**
   * Syncs whose comparison may be decided: since `take` last checked them, a summary was completed,
   * or the comparison failed.
   */
  readonly #compared = new Set<SliceSync>();

  constructor(parts: ComparisonsParts) {
    this.#parts = parts;
  }

  isFor({ slice, phase, declaresTypes }: SliceSync): boolean {
    const { store, syncs } = this.#parts;
    const { filter } = syncs;
    const isMuch = (store.state.slice(slice)?.objects ?? 0) >= comparedMin;
    return phase === 'waiting' && isMuch && !declaresTypes && filter.covers(slice) && !filter.needsPath(slice);
  }

  /**
   * Queues a `begin` that requests a summary from the other end. `snapshot` must be at the tail's
   * position.
   */
  requestSummary(sync: SliceSync, snapshot: Snapshot): void {
    const { syncs, queue, store, tail } = this.#parts;
    const { slice } = sync;
    const comparison = new SliceComparison(snapshot);
    const revision = store.revisions.format(tail.position);
    queue.frame(sync, (sequence) => {
      comparison.sequence = sequence;
      return { kind: 'begin', sequence, slice, revision, compares: true };
    });
    sync.comparison = comparison;
    sync.isRefused = false;
    syncs.marked.add(sync);
    sync.step('asked');
  }

  /** Reads one page of the own snapshot. Returns false after the last page. */
  async page(sync: SliceSync): Promise<boolean> {
    const { syncs, store } = this.#parts;
    const { comparison, slice } = sync;
    if (comparison === undefined || comparison.isRead) return false;
    try {
      const isMore = await comparison.page((objects) => filterObjects(objects, { slice, filter: syncs.filter, paths: store.paths }));
      if (!isMore) this.#compared.add(sync);
      return isMore;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      comparison.giveUp();
      this.#compared.add(sync);
      return false;
    }
  }

  /** Stores the receiver's summary of a slice, which answers the begin of that `sequence`. */
  learn({ slice, sequence, digests }: FrameOf<'summary'>): void {
    const sync = this.#parts.syncs.of(slice);
    if (sync?.comparison?.sequence !== sequence) return;
    sync.comparison.learn(digests);
    this.#compared.add(sync);
  }

  /**
   * Takes a sync whose comparison is decided. With `mayDiffer` false, it takes only a slice that is
   * equal at both ends, because the others have to be read.
   */
  take(mayDiffer: boolean): Readonly<{ sync: SliceSync; outcome: BucketSet | 'unknown' }> | undefined {
    for (const sync of this.#compared) {
      const outcome = sync.phase === 'comparing' ? sync.comparison?.outcome : undefined;
      if (outcome !== undefined && outcome !== noBuckets && !mayDiffer) continue;
      this.#compared.delete(sync);
      if (outcome !== undefined) return { sync, outcome };
    }
    return undefined;
  }
}
