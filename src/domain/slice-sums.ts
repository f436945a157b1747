/** A shard's slices taken together, for reports that have no room for each of them. Pure. */
import type { SliceStatus } from './status.js';

export type SliceSums = Readonly<{
  /** How many of them were ever synced in full, and of how many every object is here. */
  everSynced: number;
  whole: number;
  objects: number;
  bytes: number;
  /** Objects that held removals would remove; null when none is held. */
  removes: number | null;
  /** The last change and the longest lag; null when none is known. */
  changedAgoMs: number | null;
  lagMs: number | null;
}>;

export function sumSlices(slices: readonly SliceStatus[]): SliceSums {
  let [everSynced, whole, objects, bytes] = [0, 0, 0, 0];
  let removes: number | null = null;
  let changedAgoMs: number | null = null;
  let lagMs: number | null = null;
  for (const slice of slices) {
    if (slice.everSynced) everSynced += 1;
    if (slice.whole) whole += 1;
    objects += slice.objects;
    bytes += slice.bytes;
    if (slice.held !== null) removes = (removes ?? 0) + slice.held.removes;
    if (slice.changedAgoMs !== null) changedAgoMs = Math.min(changedAgoMs ?? Infinity, slice.changedAgoMs);
    if (slice.lagMs !== null) lagMs = Math.max(lagMs ?? 0, slice.lagMs);
  }
  return { everSynced, whole, objects, bytes, removes, changedAgoMs, lagMs };
}
