/** What one end of a link tells of the freshness of the slices that cross it: all of it once, then what has changed. */
import { formatSlice, type Slice } from '../domain/slice.js';
import type { FrameOf, SliceFreshness } from '../frames/frame.js';
import type { KnownShards } from '../intake/known-shards.js';

/** Whether the pusher of a slice is connected somewhere, and how far behind it is known to be. */
export type FreshnessOf = (slice: Slice) => Readonly<{ connected: boolean; lagMs: number }>;

const slicesPerFrame = 1_000;
/** A lag is told in steps: it would change every time. */
const lagStepMs = 1_000;

/** Each call gives the frames that tell what the last one did not. Bound: one text per slice. */
export function tellFreshness({ known, freshnessOf }: Readonly<{ known: KnownShards; freshnessOf: FreshnessOf }>) {
  const told = new Map<string, string>();
  let isFirst = true;
  return (slices: readonly Slice[]): readonly FrameOf<'status'>[] => {
    const changed: SliceFreshness[] = [];
    for (const slice of slices) {
      const { connected, lagMs } = freshnessOf(slice);
      const freshness = { slice, connected, synced: known.isSynced(slice), lagMs: Math.floor(lagMs / lagStepMs) * lagStepMs };
      const text = `${freshness.connected} ${freshness.synced} ${freshness.lagMs}`;
      const name = formatSlice(slice);
      if (told.get(name) === text) continue;
      told.set(name, text);
      changed.push(freshness);
    }
    // That there is nothing is told as well: who waits for it waits no longer.
    const frames = Math.max(isFirst ? 1 : 0, Math.ceil(changed.length / slicesPerFrame));
    isFirst = false;
    return Array.from({ length: frames }, (_, i) => ({
      kind: 'status',
      freshness: changed.slice(i * slicesPerFrame, (i + 1) * slicesPerFrame),
    }));
  };
}
