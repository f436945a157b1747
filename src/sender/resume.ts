/**
 * Decides how each slice continues after a cache's welcome: with the pending mutations, or with a
 * sync.
 *
 * U1 A slice continues without a sync only if its last sync is known to be complete. This very
 *    cache must have acknowledged the sync, and still name the slice as synced. The source must
 *    have stayed open since. A cache whose store lost acknowledged mutations names no slice as
 *    synced.
 * U2 An unacknowledged begin or end may have arrived or not. If an end were sent again, it could
 *    complete a sync of which a part is missing. So the slice is resynced, and counts as not synced
 *    from its begin until its end is acknowledged.
 */

export type SliceKnowledge = Readonly<{
  open: boolean;
  /**
   * The id of the cache that acknowledged the end of its last sync; undefined from the next begin
   * on, and if no cache has.
   */
  syncedAt: string | undefined;
}>;

/** `syncedThere`: whether the cache says that this sender's term has synced the slice. */
export function resume(
  { open, syncedAt }: SliceKnowledge,
  { cacheId, syncedThere }: Readonly<{ cacheId: string; syncedThere: boolean }>,
): 'go on' | 'sync' {
  return open && syncedThere && syncedAt === cacheId ? 'go on' : 'sync';
}
