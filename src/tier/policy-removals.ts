/**
 * How much of a slice goes because the policies of a link let it cross no longer, and whether that has to wait (intake/held-removals.ts). What it is
 * follows from the policies of both ends and from what is held, so nothing of it is kept; what the shard itself has deleted does not count.
 *
 *   who has narrowed what crosses       where it shows
 *   the other end                       at the end of the statement that follows
 *   this end, and something crosses     before it lets go of what it refuses now; then at the end of the statement that follows
 *   this end, and nothing crosses       before it lets go of all of it
 *
 * Cost: a slice is read only at an end that leaves out at least `removesMin` of its objects, where something of it crosses and something does not.
 */
import { Refused } from '../domain/errors.js';
import type { CanonicalPaths, Objects, Revisions } from '../domain/ports.js';
import { scopeOfSlice } from '../domain/scope.js';
import type { LinkSide } from '../domain/side.js';
import type { Slice } from '../domain/slice.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { FrameOf } from '../frames/frame.js';
import type { HeldRemovals } from '../intake/held-removals.js';
import type { KnownShards } from '../intake/known-shards.js';
import { crossingObjects } from './crossing.js';
import type { Edge } from './edge.js';
import type { Edges } from './edges.js';

export type PolicyRemovalsParts = Readonly<{
  store: Objects & Revisions & CanonicalPaths;
  known: KnownShards;
  removals: HeldRemovals;
}>;

export class PolicyRemovals {
  readonly #parts: PolicyRemovalsParts;
  readonly #side: LinkSide;
  readonly #edges: () => Edges | undefined;

  /** `edges`: as they are now. */
  constructor(parts: PolicyRemovalsParts, side: LinkSide, edges: () => Edges | undefined) {
    this.#parts = parts;
    this.#side = side;
    this.#edges = edges;
  }

  /** Whether nothing may be removed at the end of a statement. `settled` resolves once all before it is decided. */
  async holdsEnd({ slice, count, edge: stated, isSame }: FrameOf<'end'>, settled: () => Promise<void>): Promise<boolean> {
    const { known, removals } = this.#parts;
    const edges = this.#edges();
    if (edges === undefined) return true;
    if (known.shard(slice.shard)?.side !== this.#side || !edges.takes(slice, this.#side)) return false;
    const edge = edges.from(this.#side);
    if (isSame === true || edge.isWhole(slice) || this.#objectsOf(slice) < removals.removesMin) {
      removals.forget(slice);
      return false;
    }
    await settled();
    const objects = this.#objectsOf(slice);
    const leftOut = objects - count;
    // Policies have changed on the way: another statement follows, and what this one leaves out may cross by now.
    if (leftOut >= removals.removesMin && stated !== '' && stated !== edge.hashOf(slice)) return true;
    const removes = !edge.covers(slice) ? objects : leftOut < removals.removesMin ? 0 : await this.#countRefused(slice, edge);
    return removals.holds({ slice, reason: edge.hashOf(slice), removes, objects });
  }

  /** Whether this end may not let go of what its own policy refuses now; it asks before it does. */
  async holdsOwn(slice: Slice): Promise<boolean> {
    const { removals } = this.#parts;
    const edges = this.#edges();
    const objects = this.#objectsOf(slice);
    if (edges === undefined) return false;
    const own = edges.ownFrom(this.#side);
    const removes = objects < removals.removesMin ? 0 : own.covers(slice) ? await this.#countRefused(slice, own) : objects;
    return removals.holds({ slice, reason: edges.from(this.#side).hashOf(slice), removes, objects });
  }

  #objectsOf(slice: Slice): number {
    return this.#parts.known.slice(slice)?.objects ?? 0;
  }

  /** All of them, if they cannot be read in time. */
  async #countRefused(slice: Slice, edge: Edge): Promise<number> {
    const { store } = this.#parts;
    let refused = 0;
    try {
      for await (const page of snapshotPages(store.snapshot(scopeOfSlice(slice), store.published)))
        refused += page.length - (await crossingObjects(page, { slice, edge, paths: store })).length;
      return refused;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return this.#objectsOf(slice);
    }
  }
}
