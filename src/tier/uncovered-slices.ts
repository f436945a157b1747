/**
 * What came over a link and the policy of this end does not let in any more: this cache lets go of it by itself, whether or not the other
 * end follows. What is let in again meanwhile is asked for anew.
 *
 *   its policy takes nothing of the slice      all of it goes
 *   … something of it, otherwise than before   what it refuses now goes, page by page
 *
 * Of a slice of which it is not known that it came over this link nothing goes here: what another side brought is no matter of this one. One of
 * which much would go is held (policy-removals.ts): it counts as not stated, and as one of which nothing crosses; so it is known behind a restart.
 */
import { Refused } from '../domain/errors.js';
import type { Log } from '../diagnostics/log.js';
import type { StoredObject } from '../domain/object.js';
import type { CanonicalPaths, Objects, Revisions, Subscription } from '../domain/ports.js';
import type { Push, SliceState } from '../domain/push.js';
import { scopeOfSlice } from '../domain/scope.js';
import type { LinkSide } from '../domain/side.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { HeldRemovals } from '../intake/held-removals.js';
import type { KnownShards } from '../intake/known-shards.js';
import { crossingObjects } from './crossing.js';
import type { Edges } from './edges.js';
import type { LinkInflow } from './link-inflow.js';
import type { PolicyRemovals } from './policy-removals.js';

/** Given up in one commit. */
const slicesAtOnce = 256;

export type UncoveredParts = Readonly<{
  store: Objects & Revisions & CanonicalPaths;
  known: KnownShards;
  inflow: Pick<LinkInflow, 'exclusively'>;
  policyRemovals: Pick<PolicyRemovals, 'holdsOwn'>;
  removals: Pick<HeldRemovals, 'forget' | 'follow'>;
  side: LinkSide;
  turn: () => Promise<void>;
  /** As it is now: undefined once the link is closed. */
  edges: () => Edges | undefined;
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
  letGo(before: Edges | undefined): void {
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

async function letGoOfUncovered(parts: UncoveredParts, before: Edges | undefined): Promise<void> {
  const { known, inflow, side } = parts;
  // What was let in under the policy before is known once it is decided.
  await inflow.exclusively(async () => {});
  const uncovered: Slice[] = [];
  const narrowed: Slice[] = [];
  for (const { shard, side: sideNow } of known.shards) {
    const now = parts.edges();
    if (sideNow !== side || now === undefined) continue;
    for (const state of known.slicesOf(shard)) {
      const { slice, objects } = state;
      if (objects === 0 || !hasChanged(state, { before, now, side })) continue;
      if (!now.takes(slice, side)) uncovered.push(slice);
      else if (!now.ownFrom(side).isWhole(slice)) narrowed.push(slice);
    }
    await parts.turn();
  }
  for (let at = 0; at < uncovered.length; at += slicesAtOnce) await letGo(uncovered.slice(at, at + slicesAtOnce), parts);
  for (const slice of narrowed) await sift(slice, parts);
}

/** What was held is removed now: by this end where it takes nothing of the slice, by a statement that the other end makes anew where it does. */
function removeReleased(slice: Slice, parts: UncoveredParts): Promise<void> {
  const { known, inflow, side, edges } = parts;
  const now = edges();
  if (now === undefined || known.shard(slice.shard)?.side !== side) return Promise.resolve();
  if (now.takes(slice, side)) return inflow.exclusively(async ({ askAgain }) => askAgain(slice));
  // Another side brought it where it is not known that it came over this link.
  return known.slice(slice)?.edge === '' ? Promise.resolve() : letGo([slice], parts);
}

function hasChanged(
  { slice, edge }: SliceState,
  { before, now, side }: Readonly<{ before: Edges | undefined; now: Edges; side: LinkSide }>,
): boolean {
  if (before === undefined) return edge !== '' && (!now.takes(slice, side) || edge !== now.from(side).hashOf(slice));
  return before.takes(slice, side) && before.ownFrom(side).hashOf(slice) !== now.ownFrom(side).hashOf(slice);
}

function letGo(slices: readonly Slice[], { inflow, side, edges, policyRemovals, removals, log }: UncoveredParts): Promise<void> {
  const by = { kind: 'link', side } as const;
  return inflow.exclusively(async ({ push, askAgain }) => {
    const pushes: Push[] = [];
    const gone: Slice[] = [];
    for (const slice of slices) {
      const now = edges();
      if (now?.takes(slice, side) !== false) continue;
      if (await policyRemovals.holdsOwn(slice)) pushes.push({ kind: 'doubt', slice, by, edge: now.from(side).hashOf(slice) });
      else {
        gone.push(slice);
        pushes.push({ kind: 'begin', slice, by }, { kind: 'end', slice, by, edge: '' });
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

/** A snapshot that is held for too long ends it: then what is left goes when the other end has stated the slice anew. */
async function sift(slice: Slice, parts: UncoveredParts): Promise<void> {
  try {
    await siftPages(slice, parts);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    parts.log.info('link.let-go-cut-short', { slice: formatSlice(slice), reason: error.refusal.reason });
  }
}

async function siftPages(slice: Slice, parts: UncoveredParts): Promise<void> {
  const { store, inflow, policyRemovals, side, log } = parts;
  const by = { kind: 'link', side } as const;
  // Whoever stands at the other end states it anew under this policy, and that is held as well.
  if (await policyRemovals.holdsOwn(slice)) return inflow.exclusively(({ push }) => push([{ kind: 'doubt', slice, by }]));
  let objects = 0;
  for await (const page of snapshotPages(store.snapshot(scopeOfSlice(slice), store.published))) {
    const refused = await refusedOf(page, slice, parts);
    if (refused.length === 0) continue;
    await inflow.exclusively(async ({ push, askAgain }) => {
      // It may have changed since the snapshot.
      const now = await Promise.all(refused.map(({ key }) => store.get(key)));
      const still = await refusedOf(
        now.filter((object) => object !== undefined),
        slice,
        parts,
      );
      if (still.length === 0) return;
      // Out of step before anything goes: a digest that is on its way is of all that was let in.
      const doubts: readonly Push[] = objects === 0 ? [{ kind: 'doubt', slice, by }] : [];
      objects += still.length;
      await push([...doubts, ...still.map(({ key }): Push => ({ kind: 'retract', key, by }))]);
      if (doubts.length > 0) askAgain(slice);
    });
  }
  if (objects > 0) log.info('link.let-go', { slice: formatSlice(slice), objects });
}

async function refusedOf(
  objects: readonly StoredObject[],
  slice: Slice,
  { store, side, edges }: UncoveredParts,
): Promise<readonly StoredObject[]> {
  const now = edges();
  if (now === undefined) return [];
  const letIn = new Set(await crossingObjects(objects, { slice, edge: now.ownFrom(side), paths: store }));
  return objects.filter((object) => !letIn.has(object));
}
