/**
 * Counts the objects of a slice that are removed because the policies of a link let less cross.
 * Decides whether that removal has to wait (held-removals.ts). The number follows from the
 * policies of both ends and from the objects here, so it is not stored. Objects that the shard
 * itself deleted do not count.
 *
 *   who lets less cross              when this class counts
 *   the other end                    at the end of the sync that follows
 *   this end, and a part crosses     before this end removes what it now refuses, and again at the
 *                                    end of the sync that follows
 *   this end, and nothing crosses    before this end removes the whole slice
 *
 * A sync removes at its end only objects that were here at its begin. If there were at least
 * `removesMin` of them, this end compares its link filter with the one that the `end` frame names.
 * If they differ, the sync removes nothing, because objects that it left out may cross by now.
 *
 * Cost: a slice that had at least `removesMin` objects at its begin, and of which a part crosses,
 * is read once at its end. The number of puts does not show how much the sync left out, because a
 * key that changes meanwhile is put again. The end waits until everything before it is stored.
 *
 * Bound: a number for each slice whose sync is under way.
 */
import { noBuckets } from '../../domain/slices/buckets.js';
import { Refused } from '../../domain/errors.js';
import type { Store } from '../../domain/store-port.js';
import { scopeOfSlice } from '../../domain/scope.js';
import type { Neighbour } from '../../domain/via.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import type { FrameOf } from '../../frames/frame.js';
import type { HeldRemovals } from '../../intake/shards/held-removals.js';
import type { Receiver } from '../../intake/push/receiver.js';
import { filterObjects } from '../filters/filtered-changes.js';
import type { LinkFilter } from '../filters/link-filter.js';
import type { LinkFilters } from '../filters/link-filters.js';

export type PolicyRemovalsParts = Readonly<{
  store: Pick<Store, 'objects' | 'revisions' | 'paths' | 'state'>;
  removals: HeldRemovals;
}>;

export class PolicyRemovals {
  readonly #parts: PolicyRemovalsParts;
  readonly #neighbour: Neighbour;
  readonly #filters: () => LinkFilters | undefined;
  /**
   * By the text of each slice whose sync is under way: an upper bound of its objects here when that
   * sync began.
   */
  readonly #atBegin = new Map<string, number>();

  constructor(parts: PolicyRemovalsParts, neighbour: Neighbour, filters: () => LinkFilters | undefined) {
    this.#parts = parts;
    this.#neighbour = neighbour;
    this.#filters = filters;
  }

  /** A sync begins, behind everything that `receiver` has accepted. */
  begun(slice: Slice, receiver: Pick<Receiver, 'undecidedOf'>): void {
    this.#atBegin.set(formatSlice(slice), this.#objectsOf(slice) + receiver.undecidedOf(slice));
  }

  /**
   * Whether the end of a sync must remove nothing. `decided` resolves once everything before the
   * end is stored.
   */
  async endMustWait(
    { slice, filterHash: syncedIn, buckets }: FrameOf<'end'>,
    decided: () => Promise<void>,
    askAgain: () => void,
  ): Promise<boolean> {
    const { store, removals } = this.#parts;
    const isLittle = (this.#atBegin.get(formatSlice(slice)) ?? 0) < removals.removesMin;
    this.#atBegin.delete(formatSlice(slice));
    const filters = this.#filters();
    if (filters === undefined) return true;
    if (store.state.shard(slice.shard)?.via !== this.#neighbour || !filters.ownFrom(this.#neighbour).covers(slice)) return false;
    const filter = filters.from(this.#neighbour);
    // Objects that this sync left out may cross by now.
    if (!isLittle && syncedIn !== '' && syncedIn !== filter.hashOf(slice)) {
      // If a policy was changed and at once changed back, the other end may have seen no change,
      // and then resyncs nothing by itself.
      askAgain();
      return true;
    }
    if (isLittle || buckets === noBuckets || filter.letsAll(slice)) {
      removals.forget(slice);
      return false;
    }
    await decided();
    const objects = this.#objectsOf(slice);
    const removes = filter.covers(slice) ? await this.#countRefused(slice, filter) : objects;
    return removals.mustWait({ slice, reason: filter.hashOf(slice), removes, objects });
  }

  /**
   * Whether the removal of objects that this end's own policy now refuses must wait. Called before
   * that removal.
   */
  async ownMustWait(slice: Slice): Promise<boolean> {
    const { removals } = this.#parts;
    const filters = this.#filters();
    const objects = this.#objectsOf(slice);
    if (filters === undefined) return false;
    const own = filters.ownFrom(this.#neighbour);
    const removes = objects < removals.removesMin ? 0 : own.covers(slice) ? await this.#countRefused(slice, own) : objects;
    return removals.mustWait({ slice, reason: filters.from(this.#neighbour).hashOf(slice), removes, objects });
  }

  #objectsOf(slice: Slice): number {
    return this.#parts.store.state.slice(slice)?.objects ?? 0;
  }

  /** Counts the refused objects; all objects of the slice if they cannot be read in time. */
  async #countRefused(slice: Slice, filter: LinkFilter): Promise<number> {
    const { store } = this.#parts;
    let refused = 0;
    try {
      for await (const page of snapshotPages(store.objects.snapshot(scopeOfSlice(slice), store.revisions.published)))
        refused += page.length - (await filterObjects(page, { slice, filter, paths: store.paths })).length;
      return refused;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return this.#objectsOf(slice);
    }
  }
}
