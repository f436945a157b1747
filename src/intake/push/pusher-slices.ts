/**
 * The slices that a pusher has named in one connection. Once the pusher has named all, the cache
 * removes the objects of the shard's other slices, like the `end` of an empty sync. The removal has
 * the pusher's term, so the committer fences a pusher that has lost its shard. A large removal
 * waits for the operator (held-removals.ts); meanwhile the slice counts as not synced.
 *
 * Bound: `namesMax`.
 */
import type { BoundedLog } from '../../diagnostics/bounded-log.js';
import type { Refusal } from '../../domain/errors.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { PushLane } from '../../domain/store-port.js';
import type { Push, Speaker } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import { BadFrame } from '../../frames/bad-frame.js';
import type { FrameOf } from '../../frames/frame.js';
import type { HeldRemovals } from '../shards/held-removals.js';

export type NamedSlicesParts = Readonly<{
  shard: ShardName;
  by: Speaker;
  state: Pick<PublishedState, 'slicesOf'>;
  lane: PushLane;
  removals: Pick<HeldRemovals, 'all' | 'mustWait' | 'forget'>;
  log: Pick<BoundedLog, 'info'>;
  /**
   * Whether the session has ended. Another session of the same process may have named more since.
   */
  isOver: () => boolean;
}>;

/** As many as the slices that one connection may sync. */
const namesMax = 50_000;
const reason = 'unnamed';

export class PusherSlices {
  readonly #parts: NamedSlicesParts;
  readonly #names = new Set<string>();
  #areAll = false;

  constructor(parts: NamedSlicesParts) {
    this.#parts = parts;
  }

  /** All slices of the shard, as `formatSlice` texts; undefined while the shard may have others. */
  get all(): ReadonlySet<string> | undefined {
    return this.#areAll ? this.#names : undefined;
  }

  /**
   * Returns the named slices that were withdrawn. `isTurned`: the set of names became complete or
   * incomplete. Throws BadFrame.
   */
  update({ slices, withdrawn, isAll }: Omit<FrameOf<'types'>, 'kind'>): Readonly<{ gone: readonly Slice[]; isTurned: boolean }> {
    const gone = withdrawn.filter((slice) => this.#names.delete(formatSlice(slice)));
    for (const slice of slices) this.begun(slice);
    const isTurned = isAll !== this.#areAll;
    this.#areAll = isAll;
    const { shard, removals } = this.#parts;
    if (isTurned && !isAll)
      for (const held of removals.all) if (held.slice.shard === shard && held.reason === reason) removals.forget(held.slice);
    return { gone, isTurned };
  }

  /** A slice that begins counts as named. Throws BadFrame. */
  begun(slice: Slice): void {
    const name = formatSlice(slice);
    if (this.#names.has(name)) return;
    if (this.#names.size === namesMax) throw new BadFrame(`more than ${namesMax} slices were named`);
    this.#names.add(name);
    this.#parts.removals.forget(slice);
  }

  /**
   * Removes the other slices. Returns a refusal if the store could not remove them; the caller must
   * try again. A fenced pusher leaves the removal to the shard's present pusher.
   */
  async removeOthers(): Promise<Refusal | undefined> {
    const { shard, by, state, lane, removals, log, isOver } = this.#parts;
    await lane.drained();
    const { all } = this;
    if (isOver() || all === undefined) return undefined;
    // Await nothing from here to the push, so that a slice named meanwhile begins after this
    // removal.
    const pushes: Push[] = [];
    const removed: Slice[] = [];
    for (const { slice, objects } of state.slicesOf(shard)) {
      if (all.has(formatSlice(slice)) || objects === 0) continue;
      if (removals.mustWait({ slice, reason, removes: objects, objects })) pushes.push({ kind: 'invalidate', slice, by });
      else {
        removed.push(slice);
        pushes.push({ kind: 'begin', slice, by }, { kind: 'end', slice, by, filterHash: '' });
      }
    }
    if (pushes.length === 0) return undefined;
    const outcomes = await lane.push(pushes);
    const failed = outcomes.find((outcome) => outcome.kind === 'unavailable');
    if (failed !== undefined || outcomes.some(({ kind }) => kind === 'fenced')) return failed?.refusal;
    for (const slice of removed) {
      removals.forget(slice);
      log.info('push.unnamed-removed', { slice: formatSlice(slice) });
    }
    return undefined;
  }
}
