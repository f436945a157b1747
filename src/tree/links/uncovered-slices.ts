/**
 * Removes objects that arrived over a link and that the policy of this end refuses now, whatever
 * the other end does. Objects that the policy accepts again meanwhile are resynced.
 *
 *   the policy accepts nothing of the slice       this end removes the whole slice
 *   it accepts another part than before           this end removes what it refuses now, by pages
 *
 * This end removes only slices that certainly arrived over this link, because another neighbour may
 * have sent other slices. A large removal is held (policy-removals.ts).
 */
import { Refused } from '../../domain/errors.js';
import type { Log } from '../../diagnostics/log.js';
import type { StoredObject } from '../../domain/object.js';
import type { Subscription } from '../../domain/ports.js';
import type { Store } from '../../domain/store-port.js';
import type { Push, SliceState } from '../../domain/push.js';
import { scopeOfSlice } from '../../domain/scope.js';
import type { Neighbour } from '../../domain/via.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import type { HeldRemovals } from '../../intake/shards/held-removals.js';
import { filterObjects } from '../filters/filtered-changes.js';
import type { LinkFilters } from '../filters/link-filters.js';
import type { LinkReceiver } from './link-receiver.js';
import type { PolicyRemovals } from './policy-removals.js';

const slicesAtOnce = 256;

export type UncoveredParts = Readonly<{
  store: Pick<Store, 'objects' | 'revisions' | 'paths' | 'state'>;
  linkReceiver: Pick<LinkReceiver, 'exclusively'>;
  policyRemovals: Pick<PolicyRemovals, 'ownMustWait'>;
  removals: Pick<HeldRemovals, 'forget' | 'made' | 'follow'>;
  neighbour: Neighbour;
  turn: () => Promise<void>;
  /** The filters at the moment of the call. Undefined once the link is closed. */
  filters: () => LinkFilters | undefined;
  log: Pick<Log, 'info'>;
  /** Handles the errors of the work. */
  owned: (work: Promise<void>) => Promise<void>;
}>;

export class UncoveredSlices {
  readonly #parts: UncoveredParts;
  readonly #released: Subscription;
  /** Settles when all work so far has settled. */
  #work: Promise<unknown> = Promise.resolve();

  constructor(parts: UncoveredParts) {
    this.#parts = parts;
    this.#released = parts.removals.follow((slice) => this.#own(removeReleased(slice, parts)));
  }

  /**
   * `before`: the filters until now. Undefined: the link has just opened, and policies may have
   * changed while it was down.
   */
  removeUncovered(before: LinkFilters | undefined): void {
    this.#own(removeAllUncovered(this.#parts, before));
  }

  async close(): Promise<void> {
    this.#released.cancel();
    await this.#work;
  }

  #own(work: Promise<void>): void {
    this.#work = Promise.all([this.#work, this.#parts.owned(work)]);
  }
}

async function removeAllUncovered(parts: UncoveredParts, before: LinkFilters | undefined): Promise<void> {
  const { store, linkReceiver, neighbour } = parts;
  // Wait until everything that was accepted under the former policy is decided and published.
  await linkReceiver.exclusively(async () => {});
  const uncovered: Slice[] = [];
  const narrowed: Slice[] = [];
  for (const { shard, via: viaNow } of store.state.shards) {
    const now = parts.filters();
    if (viaNow !== neighbour || now === undefined) continue;
    for (const state of store.state.slicesOf(shard)) {
      const { slice, objects, cameOver } = state;
      if (objects === 0 || cameOver !== neighbour || !hasChanged(state, { before, now, neighbour })) continue;
      const own = now.ownFrom(neighbour);
      if (!own.covers(slice)) uncovered.push(slice);
      else if (!own.letsAll(slice)) narrowed.push(slice);
    }
    await parts.turn();
  }
  for (let at = 0; at < uncovered.length; at += slicesAtOnce) await removeSlices(uncovered.slice(at, at + slicesAtOnce), parts);
  for (const slice of narrowed) await removeRefused(slice, parts);
}

/**
 * Makes a removal that was held. This end removes the slice if its own policy accepts nothing of
 * the slice. Otherwise it asks the other end to repeat the sync that removes
 * the objects.
 */
function removeReleased(slice: Slice, parts: UncoveredParts): Promise<void> {
  const { store, linkReceiver, neighbour, filters } = parts;
  const now = filters();
  if (now === undefined || store.state.shard(slice.shard)?.via !== neighbour) return Promise.resolve();
  if (now.ownFrom(neighbour).covers(slice)) return linkReceiver.exclusively(async ({ askAgain }) => askAgain(slice));
  return store.state.slice(slice)?.cameOver === neighbour ? removeSlices([slice], parts) : Promise.resolve();
}

function hasChanged(
  { slice, filterHash }: SliceState,
  { before, now, neighbour }: Readonly<{ before: LinkFilters | undefined; now: LinkFilters; neighbour: Neighbour }>,
): boolean {
  const own = now.ownFrom(neighbour);
  if (before === undefined) return !own.covers(slice) || filterHash !== now.from(neighbour).hashOf(slice);
  return before.ownFrom(neighbour).covers(slice) && before.ownFrom(neighbour).hashOf(slice) !== own.hashOf(slice);
}

function removeSlices(
  slices: readonly Slice[],
  { linkReceiver, neighbour, filters, policyRemovals, removals, log }: UncoveredParts,
): Promise<void> {
  const by = { kind: 'link', neighbour } as const;
  return linkReceiver.exclusively(async ({ push, askAgain }) => {
    const pushes: Push[] = [];
    const [held, gone]: [Slice[], Slice[]] = [[], []];
    for (const slice of slices) {
      const now = filters();
      if (now?.ownFrom(neighbour).covers(slice) !== false) continue;
      if (await policyRemovals.ownMustWait(slice)) {
        held.push(slice);
        pushes.push({ kind: 'invalidate', slice, by });
      } else {
        gone.push(slice);
        pushes.push({ kind: 'begin', slice, by }, { kind: 'end', slice, by, filterHash: '' });
      }
    }
    if (pushes.length > 0) await push(pushes);
    for (const slice of held) askAgain(slice);
    for (const slice of gone) {
      removals.forget(slice);
      log.info('link.slice-removed', { slice: formatSlice(slice) });
      askAgain(slice);
    }
  });
}

/**
 * Stops if a snapshot is held for too long. The rest is removed when the other end has resynced the
 * slice.
 */
async function removeRefused(slice: Slice, parts: UncoveredParts): Promise<void> {
  try {
    await siftPages(slice, parts);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    parts.log.info('link.removal-failed', { slice: formatSlice(slice), reason: error.refusal.reason });
  }
}

async function siftPages(slice: Slice, parts: UncoveredParts): Promise<void> {
  const { store, linkReceiver, policyRemovals, removals, neighbour, log } = parts;
  const by = { kind: 'link', neighbour } as const;
  // This removal is held. Request a resync, whose removal is held too: the other end may miss a
  // policy that was changed and at once changed back, and then does not resync by itself.
  if (await policyRemovals.ownMustWait(slice))
    return linkReceiver.exclusively(async ({ push, askAgain }) => {
      await push([{ kind: 'invalidate', slice, by }]);
      askAgain(slice);
    });
  let objects = 0;
  for await (const page of snapshotPages(store.objects.snapshot(scopeOfSlice(slice), store.revisions.published))) {
    const refused = await refusedOf(page, slice, parts);
    if (refused.length === 0) continue;
    await linkReceiver.exclusively(async ({ push, askAgain }) => {
      // The objects may have changed since the snapshot.
      const now = await Promise.all(refused.map(({ key }) => store.objects.get(key)));
      const still = await refusedOf(
        now.filter((object) => object !== undefined),
        slice,
        parts,
      );
      if (still.length === 0) return;
      // Mark the slice stale first: a digest that is on its way still includes these objects, and
      // would count as a difference.
      const invalidations: readonly Push[] = objects === 0 ? [{ kind: 'invalidate', slice, by }] : [];
      objects += still.length;
      await push([...invalidations, ...still.map(({ key }): Push => ({ kind: 'retract', key, by }))]);
      if (invalidations.length > 0) askAgain(slice);
    });
  }
  if (objects === 0) return;
  removals.made(slice);
  log.info('link.objects-removed', { slice: formatSlice(slice), objects });
}

async function refusedOf(
  objects: readonly StoredObject[],
  slice: Slice,
  { store, neighbour, filters }: UncoveredParts,
): Promise<readonly StoredObject[]> {
  const now = filters();
  if (now === undefined) return [];
  const letIn = new Set(await filterObjects(objects, { slice, filter: now.ownFrom(neighbour), paths: store.paths }));
  return objects.filter((object) => !letIn.has(object));
}
