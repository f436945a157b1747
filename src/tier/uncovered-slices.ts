/**
 * What came over a link and the policy of this end does not let in any more: this cache lets go of it by itself, whether or not the other
 * end follows. What is let in again meanwhile is asked for anew.
 *
 *   its policy takes nothing of the slice      all of it goes
 *   … something of it, otherwise than before   what it refuses now goes, page by page
 *
 * Of a slice of which it is not known that it came over this link nothing goes here: what another neighbour brought is no matter of this one. One of
 * which much would go is held (policy-removals.ts): it counts as not synced, and as one of which nothing crosses; so it is known behind a restart.
 */
import { Refused } from '../domain/errors.js';
import type { Log } from '../diagnostics/log.js';
import type { StoredObject } from '../domain/object.js';
import type { CanonicalPaths, Objects, Revisions, Subscription } from '../domain/ports.js';
import type { Push, SliceState } from '../domain/push.js';
import { scopeOfSlice } from '../domain/scope.js';
import type { Neighbour } from '../domain/via.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { HeldRemovals } from '../intake/held-removals.js';
import type { KnownShards } from '../intake/known-shards.js';
import { filterObjects } from './filtered-changes.js';
import type { LinkFilters } from './link-filters.js';
import type { LinkReceiver } from './link-receiver.js';
import type { PolicyRemovals } from './policy-removals.js';

/** Given up in one commit. */
const slicesAtOnce = 256;

export type UncoveredParts = Readonly<{
  store: Objects & Revisions & CanonicalPaths;
  known: KnownShards;
  linkReceiver: Pick<LinkReceiver, 'exclusively'>;
  policyRemovals: Pick<PolicyRemovals, 'holdsOwn'>;
  removals: Pick<HeldRemovals, 'forget' | 'follow'>;
  neighbour: Neighbour;
  turn: () => Promise<void>;
  /** As it is now: undefined once the link is closed. */
  filters: () => LinkFilters | undefined;
  log: Pick<Log, 'info'>;
  /** Sees to what such work throws. */
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

  /** Resolves once nothing of it is under way. */
  async close(): Promise<void> {
    this.#released.cancel();
    await this.#work;
  }

  #own(work: Promise<void>): void {
    this.#work = Promise.all([this.#work, this.#parts.owned(work)]);
  }
}

async function letGoOfUncovered(parts: UncoveredParts, before: LinkFilters | undefined): Promise<void> {
  const { known, linkReceiver, neighbour } = parts;
  // What was let in under the policy before is known once it is decided.
  await linkReceiver.exclusively(async () => {});
  const uncovered: Slice[] = [];
  const narrowed: Slice[] = [];
  for (const { shard, via: viaNow } of known.shards) {
    const now = parts.filters();
    if (viaNow !== neighbour || now === undefined) continue;
    for (const state of known.slicesOf(shard)) {
      const { slice, objects } = state;
      if (objects === 0 || !hasChanged(state, { before, now, neighbour })) continue;
      if (!now.takes(slice, neighbour)) uncovered.push(slice);
      else if (!now.ownFrom(neighbour).isWhole(slice)) narrowed.push(slice);
    }
    await parts.turn();
  }
  for (let at = 0; at < uncovered.length; at += slicesAtOnce) await letGo(uncovered.slice(at, at + slicesAtOnce), parts);
  for (const slice of narrowed) await sift(slice, parts);
}

/** What was held is removed now: by this end where it takes nothing of the slice, by a sync that the other end makes anew where it does. */
function removeReleased(slice: Slice, parts: UncoveredParts): Promise<void> {
  const { known, linkReceiver, neighbour, filters } = parts;
  const now = filters();
  if (now === undefined || known.shard(slice.shard)?.via !== neighbour) return Promise.resolve();
  if (now.takes(slice, neighbour)) return linkReceiver.exclusively(async ({ askAgain }) => askAgain(slice));
  // Another side brought it where it is not known that it came over this link.
  return known.slice(slice)?.filterHash === '' ? Promise.resolve() : letGo([slice], parts);
}

function hasChanged(
  { slice, filterHash }: SliceState,
  { before, now, neighbour }: Readonly<{ before: LinkFilters | undefined; now: LinkFilters; neighbour: Neighbour }>,
): boolean {
  if (before === undefined) return filterHash !== '' && (!now.takes(slice, neighbour) || filterHash !== now.from(neighbour).hashOf(slice));
  return before.takes(slice, neighbour) && before.ownFrom(neighbour).hashOf(slice) !== now.ownFrom(neighbour).hashOf(slice);
}

function letGo(
  slices: readonly Slice[],
  { linkReceiver, neighbour, filters, policyRemovals, removals, log }: UncoveredParts,
): Promise<void> {
  const by = { kind: 'link', neighbour } as const;
  return linkReceiver.exclusively(async ({ push, askAgain }) => {
    const pushes: Push[] = [];
    const gone: Slice[] = [];
    for (const slice of slices) {
      const now = filters();
      if (now?.takes(slice, neighbour) !== false) continue;
      if (await policyRemovals.holdsOwn(slice))
        pushes.push({ kind: 'invalidate', slice, by, filterHash: now.from(neighbour).hashOf(slice) });
      else {
        gone.push(slice);
        pushes.push({ kind: 'begin', slice, by }, { kind: 'end', slice, by, filterHash: '' });
      }
    }
    if (pushes.length > 0) await push(pushes);
    for (const slice of gone) {
      removals.forget(slice);
      log.info('link.let-go', { slice: formatSlice(slice) });
      askAgain(slice);
    }
  });
}

/** A snapshot that is held for too long ends it: then what is left goes when the other end has synced the slice anew. */
async function sift(slice: Slice, parts: UncoveredParts): Promise<void> {
  try {
    await siftPages(slice, parts);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    parts.log.info('link.let-go-cut-short', { slice: formatSlice(slice), reason: error.refusal.reason });
  }
}

async function siftPages(slice: Slice, parts: UncoveredParts): Promise<void> {
  const { store, linkReceiver, policyRemovals, neighbour, log } = parts;
  const by = { kind: 'link', neighbour } as const;
  // Whoever stands at the other end resyncs it under this policy, and that is held as well.
  if (await policyRemovals.holdsOwn(slice)) return linkReceiver.exclusively(({ push }) => push([{ kind: 'invalidate', slice, by }]));
  let objects = 0;
  for await (const page of snapshotPages(store.snapshot(scopeOfSlice(slice), store.published))) {
    const refused = await refusedOf(page, slice, parts);
    if (refused.length === 0) continue;
    await linkReceiver.exclusively(async ({ push, askAgain }) => {
      // It may have changed since the snapshot.
      const now = await Promise.all(refused.map(({ key }) => store.get(key)));
      const still = await refusedOf(
        now.filter((object) => object !== undefined),
        slice,
        parts,
      );
      if (still.length === 0) return;
      // Stale before anything goes: a digest that is on its way is of all that was let in.
      const invalidations: readonly Push[] = objects === 0 ? [{ kind: 'invalidate', slice, by }] : [];
      objects += still.length;
      await push([...invalidations, ...still.map(({ key }): Push => ({ kind: 'retract', key, by }))]);
      if (invalidations.length > 0) askAgain(slice);
    });
  }
  if (objects > 0) log.info('link.let-go', { slice: formatSlice(slice), objects });
}

async function refusedOf(
  objects: readonly StoredObject[],
  slice: Slice,
  { store, neighbour, filters }: UncoveredParts,
): Promise<readonly StoredObject[]> {
  const now = filters();
  if (now === undefined) return [];
  const letIn = new Set(await filterObjects(objects, { slice, filter: now.ownFrom(neighbour), paths: store }));
  return objects.filter((object) => !letIn.has(object));
}
