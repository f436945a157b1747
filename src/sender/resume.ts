/**
 * Decides, once a cache has sent its welcome, how each slice continues: with what it had still to send, or with a sync.
 *
 * U1 A slice goes on only if its last sync is known to be complete: acknowledged by this very cache, still synced
 *    there, and with its source open since. A cache whose store has lost what it acknowledged names no slice as synced.
 * U2 A begin or an end that was sent and not acknowledged may have arrived or not; sent again it could end a sync of which
 *    a part is missing. Such a slice is resynced: from a begin to the acknowledgement of its end it counts as synced nowhere.
 */

export type SliceKnowledge = Readonly<{
  /** Whether its source is being read. */
  open: boolean;
  /** The id of the cache that acknowledged the end of its last sync; undefined from the sending of a begin on, and when none did. */
  syncedAt: string | undefined;
}>;

/** `syncedThere`: whether the cache names the slice as synced by this term. */
export function resume(
  { open, syncedAt }: SliceKnowledge,
  { cacheId, syncedThere }: Readonly<{ cacheId: string; syncedThere: boolean }>,
): 'go on' | 'sync' {
  return open && syncedThere && syncedAt === cacheId ? 'go on' : 'sync';
}
