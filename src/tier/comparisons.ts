/**
 * Slices that are compared before they are synced: the other end may have all of them already, as when a cache comes back to a parent.
 *
 *   begin, compares ──▶ own snapshot, page by page ──┐
 *                  └──▶ summary of the other end ────┴▶ the objects of the buckets that differ, then `end` · no summary: a new begin, all of it
 *
 * D1 The snapshot stands where the tail does when the begin is queued. The other end may have put what the tail sent since, before it sums up: where
 *    the two are the same, what the tail sent last of each key is what the snapshot has.
 * D2 What differs is read again, at the tail's position by then, and sent within the same sync: the marks of that begin stand.
 * D3 Not compared: slices of less than `comparedMin` objects, those that declare types, and those filtered by paths, because paths may move.
 */
import { noBuckets, type BucketSet } from '../domain/buckets.js';
import { Refused } from '../domain/errors.js';
import type { Snapshot, Store } from '../domain/store-port.js';
import type { FrameOf } from '../frames/frame.js';
import type { SliceSyncs } from './slice-syncs.js';
import { filterObjects } from './filtered-changes.js';
import type { LinkSenderQueue } from './link-sender-queue.js';
import { SliceComparison } from './slice-comparison.js';
import type { SliceSync } from './slice-sync.js';
import type { Tail } from './tail.js';

export type ComparisonsParts = Readonly<{
  store: Pick<Store, 'revisions' | 'paths' | 'state'>;
  queue: LinkSenderQueue;
  syncs: SliceSyncs;
  tail: Tail;
}>;

/** A slice of less than a few pages is sent as fast as it is compared. */
const comparedMin = 128;

export class Comparisons {
  readonly #parts: ComparisonsParts;
  /** Those with both summaries, or one that will not come. */
  readonly #compared = new Set<SliceSync>();

  constructor(parts: ComparisonsParts) {
    this.#parts = parts;
  }

  isFor({ slice, phase, declaresTypes }: SliceSync): boolean {
    const { store, syncs } = this.#parts;
    const { filter } = syncs;
    const isMuch = (store.state.slice(slice)?.objects ?? 0) >= comparedMin;
    return phase === 'waiting' && isMuch && !declaresTypes && filter.covers(slice) && !filter.asksPath(slice);
  }

  /** `snapshot`: at the position of the tail. */
  ask(sync: SliceSync, snapshot: Snapshot): void {
    const { syncs, queue, store, tail } = this.#parts;
    const { slice } = sync;
    const comparison = new SliceComparison(snapshot);
    const revision = store.revisions.format(tail.position);
    queue.frame(
      sync,
      (sequence) => {
        comparison.sequence = sequence;
        return { kind: 'begin', sequence, slice, revision, compares: true };
      },
      () => (sync.objects = 0),
    );
    sync.comparison = comparison;
    sync.isRefused = false;
    syncs.marked.add(sync);
    sync.step('asked');
  }

  /** Reads one page. False: there are no more. */
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

  /** The other end has summed up what it held of the slice at that begin. */
  learn({ slice, sequence, digests }: FrameOf<'summary'>): void {
    const sync = this.#parts.syncs.of(slice);
    if (sync?.comparison?.sequence !== sequence) return;
    sync.comparison.learn(digests);
    this.#compared.add(sync);
  }

  /** Takes one of which it is known where the other end differs; `mayDiffer`: also one that differs anywhere. */
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
