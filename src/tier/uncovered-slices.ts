/** What came over a link and the policy of this end takes nothing of any more: this cache lets go of it by itself, whatever the other end says. */
import type { LinkSide } from '../domain/side.js';
import type { Slice } from '../domain/slice.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { Edges } from './edges.js';
import type { LinkInflow } from './link-inflow.js';

/**
 * `before`: what crossed until now. Undefined: the link has just opened, and its policy may have changed while it was down; what is in step
 * has come over it, and of anything else it is not known.
 */
export async function letGoOfUncovered(
  { known, inflow, side }: Readonly<{ known: KnownShards; inflow: Pick<LinkInflow, 'decided' | 'letGo'>; side: LinkSide }>,
  { before, now }: Readonly<{ before: Edges | undefined; now: Edges }>,
): Promise<void> {
  const cameOverIt = (slice: Slice, edge: string): boolean => before?.takes(slice, side) ?? edge !== '';
  // What was let in under the policy before is known once it is decided.
  await inflow.decided();
  for (const { shard, side: sideNow } of known.shards) {
    if (sideNow !== side) continue;
    const uncovered = [...known.slicesOf(shard)].filter(
      ({ slice, edge, objects }) => objects > 0 && !now.takes(slice, side) && cameOverIt(slice, edge),
    );
    if (uncovered.length > 0) await inflow.letGo(uncovered.map(({ slice }) => slice));
  }
}
