/**
 * How much of a slice is removed because the policies of a link let it cross no longer, and whether that has to wait (intake/held-removals.ts).
 * That follows from the policies of both ends and from what is held, so nothing of it is kept. What the shard itself has deleted does not count.
 *
 *   who has narrowed what crosses       where it shows
 *   the other end                       at the end of the sync that follows
 *   this end, and something crosses     before it removes what it refuses now; then at the end of the sync that follows
 *   this end, and nothing crosses       before it removes all of it
 *
 * A sync removes at its end only what was there at its begin. An end under another link filter than this end's removes nothing where that was
 * at least `removesMin` objects: what it leaves out may cross by now.
 *
 * Cost: at the end of its sync, a slice that held as much at its begin is read once if something of it crosses and something does not. How
 * much the sync left out cannot be told from the number of its puts, because a key that changes meanwhile is put again. The end waits until
 * what was taken before it is stored. Bound: a number for each slice in the middle of a sync.
 */
import { noBuckets } from '../domain/buckets.js';
import { Refused } from '../domain/errors.js';
import type { Store } from '../domain/store-port.js';
import { scopeOfSlice } from '../domain/scope.js';
import type { Neighbour } from '../domain/via.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { FrameOf } from '../frames/frame.js';
import type { HeldRemovals } from '../intake/held-removals.js';
import type { Receiver } from '../intake/receiver.js';
import { filterObjects } from './filtered-changes.js';
import type { LinkFilter } from './link-filter.js';
import type { LinkFilters } from './link-filters.js';

export type PolicyRemovalsParts = Readonly<{
  store: Pick<Store, 'objects' | 'revisions' | 'paths' | 'state'>;
  removals: HeldRemovals;
}>;

export class PolicyRemovals {
  readonly #parts: PolicyRemovalsParts;
  readonly #neighbour: Neighbour;
  readonly #filters: () => LinkFilters | undefined;
  /** By the text of each slice that is being synced: how many objects were there at its begin, at most. */
  readonly #atBegin = new Map<string, number>();

  /** `filters`: as they are now. */
  constructor(parts: PolicyRemovalsParts, neighbour: Neighbour, filters: () => LinkFilters | undefined) {
    this.#parts = parts;
    this.#neighbour = neighbour;
    this.#filters = filters;
  }

  /** A sync begins, behind everything that `receiver` has taken. */
  begun(slice: Slice, receiver: Pick<Receiver, 'undecidedOf'>): void {
    this.#atBegin.set(formatSlice(slice), this.#objectsOf(slice) + receiver.undecidedOf(slice));
  }

  /** Whether nothing may be removed at the end of a sync. `settled` resolves once everything before it is stored. */
  async holdsEnd(
    { slice, filterHash: syncedIn, buckets }: FrameOf<'end'>,
    settled: () => Promise<void>,
    askAgain: () => void,
  ): Promise<boolean> {
    const { store, removals } = this.#parts;
    const isLittle = (this.#atBegin.get(formatSlice(slice)) ?? 0) < removals.removesMin;
    this.#atBegin.delete(formatSlice(slice));
    const filters = this.#filters();
    if (filters === undefined) return true;
    if (store.state.shard(slice.shard)?.via !== this.#neighbour || !filters.takes(slice, this.#neighbour)) return false;
    const filter = filters.from(this.#neighbour);
    // What this sync leaves out may cross by now.
    if (!isLittle && syncedIn !== '' && syncedIn !== filter.hashOf(slice)) {
      // The other end may not see a policy that is taken back at once, and then resyncs nothing by itself.
      askAgain();
      return true;
    }
    if (isLittle || buckets === noBuckets || filter.isWhole(slice)) {
      removals.forget(slice);
      return false;
    }
    await settled();
    const objects = this.#objectsOf(slice);
    const removes = filter.covers(slice) ? await this.#countRefused(slice, filter) : objects;
    return removals.holds({ slice, reason: filter.hashOf(slice), removes, objects });
  }

  /** Whether this end must not remove yet what its own policy refuses now; called before it does. */
  async holdsOwn(slice: Slice): Promise<boolean> {
    const { removals } = this.#parts;
    const filters = this.#filters();
    const objects = this.#objectsOf(slice);
    if (filters === undefined) return false;
    const own = filters.ownFrom(this.#neighbour);
    const removes = objects < removals.removesMin ? 0 : own.covers(slice) ? await this.#countRefused(slice, own) : objects;
    return removals.holds({ slice, reason: filters.from(this.#neighbour).hashOf(slice), removes, objects });
  }

  #objectsOf(slice: Slice): number {
    return this.#parts.store.state.slice(slice)?.objects ?? 0;
  }

  /** How many objects are refused; all of them, if they cannot be read in time. */
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
