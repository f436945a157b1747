/** The sums over a shard's slices, for reports that do not list each slice. Pure. */
import type { SliceStatus } from '../status.js';

export type SliceSums = Readonly<{
  /**
   * `everSynced`: slices that were ever synced in full. `whole`: slices of which the cache has
   * every object.
   */
  everSynced: number;
  whole: number;
  objects: number;
  bytes: number;
  /** How many objects the held removals would remove; null if none is held. */
  removes: number | null;
  /** The latest change and the longest lag; null if unknown. */
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
