/**
 * Removes what came over a link and the policy of this end no longer accepts, whether or not the other end follows. What is accepted
 * again meanwhile is resynced.
 *
 *   its policy takes nothing of the slice      all of it goes
 *   … something of it, otherwise than before   what it refuses now goes, page by page
 *
 * Nothing is removed from a slice that is not known to have come over this link: another neighbour may have brought it. A removal of
 * much is held (policy-removals.ts).
 */
import { Refused } from '../domain/errors.js';
import type { Log } from '../diagnostics/log.js';
import type { StoredObject } from '../domain/object.js';
import type { Subscription } from '../domain/ports.js';
import type { Store } from '../domain/store-port.js';
import type { Push, SliceState } from '../domain/push.js';
import { scopeOfSlice } from '../domain/scope.js';
import type { Neighbour } from '../domain/via.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { HeldRemovals } from '../intake/held-removals.js';
import { filterObjects } from './filtered-changes.js';
import type { LinkFilters } from './link-filters.js';
import type { LinkReceiver } from './link-receiver.js';
import type { PolicyRemovals } from './policy-removals.js';

/** Removed in one commit. */
const slicesAtOnce = 256;

export type UncoveredParts = Readonly<{
  store: Pick<Store, 'objects' | 'revisions' | 'paths' | 'state'>;
  linkReceiver: Pick<LinkReceiver, 'exclusively'>;
  policyRemovals: Pick<PolicyRemovals, 'holdsOwn'>;
  removals: Pick<HeldRemovals, 'forget' | 'made' | 'follow'>;
  neighbour: Neighbour;
  turn: () => Promise<void>;
  /** As it is now: undefined once the link is closed. */
  filters: () => LinkFilters | undefined;
  log: Pick<Log, 'info'>;
  /** Handles what such work throws. */
  owned: (work: Promise<void>) => Promise<void>;
}>;

export class UncoveredSlices {
  readonly #parts: UncoveredParts;
  readonly #released: Subscription;
  /** Settles when all of it so far has. */
  #work: Promise<unknown> = Promise.resolve();

  constructor(parts: UncoveredParts) {
    this.#parts = parts;
    this.#released = parts.removals.follow((slice) => this.#own(removeReleased(slice, parts)));
  }

  /** `before`: what crossed until now. Undefined: the link has just opened, and policies may have changed while it was down. */
  letGo(before: LinkFilters | undefined): void {
    this.#own(letGoOfUncovered(this.#parts, before));
  }

  /** Resolves once none of it is under way. */
  async close(): Promise<void> {
    this.#released.cancel();
    await this.#work;
  }

  #own(work: Promise<void>): void {
    this.#work = Promise.all([this.#work, this.#parts.owned(work)]);
  }
}

async function letGoOfUncovered(parts: UncoveredParts, before: LinkFilters | undefined): Promise<void> {
  const { store, linkReceiver, neighbour } = parts;
  // What was accepted under the former policy is known once it is decided.
  await linkReceiver.exclusively(async () => {});
  const uncovered: Slice[] = [];
  const narrowed: Slice[] = [];
  for (const { shard, via: viaNow } of store.state.shards) {
    const now = parts.filters();
    if (viaNow !== neighbour || now === undefined) continue;
    for (const state of store.state.slicesOf(shard)) {
      const { slice, objects, cameOver } = state;
      if (objects === 0 || cameOver !== neighbour || !hasChanged(state, { before, now, neighbour })) continue;
      if (!now.takes(slice, neighbour)) uncovered.push(slice);
      else if (!now.ownFrom(neighbour).isWhole(slice)) narrowed.push(slice);
    }
    await parts.turn();
  }
  for (let at = 0; at < uncovered.length; at += slicesAtOnce) await letGo(uncovered.slice(at, at + slicesAtOnce), parts);
  for (const slice of narrowed) await sift(slice, parts);
}

/** Makes a removal that was held: this end where it takes nothing of the slice, otherwise the sync that the other end repeats. */
function removeReleased(slice: Slice, parts: UncoveredParts): Promise<void> {
  const { store, linkReceiver, neighbour, filters } = parts;
  const now = filters();
  if (now === undefined || store.state.shard(slice.shard)?.via !== neighbour) return Promise.resolve();
  if (now.takes(slice, neighbour)) return linkReceiver.exclusively(async ({ askAgain }) => askAgain(slice));
  return store.state.slice(slice)?.cameOver === neighbour ? letGo([slice], parts) : Promise.resolve();
}

function hasChanged(
  { slice, filterHash }: SliceState,
  { before, now, neighbour }: Readonly<{ before: LinkFilters | undefined; now: LinkFilters; neighbour: Neighbour }>,
): boolean {
  if (before === undefined) return !now.takes(slice, neighbour) || filterHash !== now.from(neighbour).hashOf(slice);
  return before.takes(slice, neighbour) && before.ownFrom(neighbour).hashOf(slice) !== now.ownFrom(neighbour).hashOf(slice);
}

function letGo(
  slices: readonly Slice[],
  { linkReceiver, neighbour, filters, policyRemovals, removals, log }: UncoveredParts,
): Promise<void> {
  const by = { kind: 'link', neighbour } as const;
  return linkReceiver.exclusively(async ({ push, askAgain }) => {
    const pushes: Push[] = [];
    const [held, gone]: [Slice[], Slice[]] = [[], []];
    for (const slice of slices) {
      const now = filters();
      if (now?.takes(slice, neighbour) !== false) continue;
      if (await policyRemovals.holdsOwn(slice)) {
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
      log.info('link.let-go', { slice: formatSlice(slice) });
      askAgain(slice);
    }
  });
}

/** A snapshot that is held for too long ends this: what is left goes when the other end has resynced the slice. */
async function sift(slice: Slice, parts: UncoveredParts): Promise<void> {
  try {
    await siftPages(slice, parts);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    parts.log.info('link.let-go-cut-short', { slice: formatSlice(slice), reason: error.refusal.reason });
  }
}

async function siftPages(slice: Slice, parts: UncoveredParts): Promise<void> {
  const { store, linkReceiver, policyRemovals, removals, neighbour, log } = parts;
  const by = { kind: 'link', neighbour } as const;
  // What the other end resyncs under this policy is held as well. It is asked to, because it may not see a policy that is taken back at once.
  if (await policyRemovals.holdsOwn(slice))
    return linkReceiver.exclusively(async ({ push, askAgain }) => {
      await push([{ kind: 'invalidate', slice, by }]);
      askAgain(slice);
    });
  let objects = 0;
  for await (const page of snapshotPages(store.objects.snapshot(scopeOfSlice(slice), store.revisions.published))) {
    const refused = await refusedOf(page, slice, parts);
    if (refused.length === 0) continue;
    await linkReceiver.exclusively(async ({ push, askAgain }) => {
      // It may have changed since the snapshot.
      const now = await Promise.all(refused.map(({ key }) => store.objects.get(key)));
      const still = await refusedOf(
        now.filter((object) => object !== undefined),
        slice,
        parts,
      );
      if (still.length === 0) return;
      // Marked stale before anything goes: a digest that is on its way covers all that was accepted.
      const invalidations: readonly Push[] = objects === 0 ? [{ kind: 'invalidate', slice, by }] : [];
      objects += still.length;
      await push([...invalidations, ...still.map(({ key }): Push => ({ kind: 'retract', key, by }))]);
      if (invalidations.length > 0) askAgain(slice);
    });
  }
  if (objects === 0) return;
  removals.made(slice);
  log.info('link.let-go', { slice: formatSlice(slice), objects });
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
