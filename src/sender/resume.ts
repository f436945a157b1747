/**
 * Decides, once a cache has said welcome, how each slice continues: with what it had still to tell, or with a statement.
 *
 * U1 A slice goes on only where its last statement is known to be whole: acknowledged by this very cache, still held to be stated
 *    there, and with its source open since. A cache whose store has lost what it acknowledged holds nothing to be stated.
 * U2 A begin or an end that was sent and not acknowledged may have arrived or not; sent again it could end a statement of which
 *    a part is missing. Such a slice is stated: from a begin to the acknowledgement of its end it counts as stated nowhere.
 */

export type SliceKnowledge = Readonly<{
  /** Whether its source is being read. */
  open: boolean;
  /** The id of the cache that acknowledged the end of its last statement; undefined from the sending of a begin on, and when none did. */
  statedAt: string | undefined;
}>;

/** `statedThere`: whether the cache names the slice as stated by this incarnation. */
export function resume(
  { open, statedAt }: SliceKnowledge,
  { cacheId, statedThere }: Readonly<{ cacheId: string; statedThere: boolean }>,
): 'go on' | 'state' {
  return open && statedThere && statedAt === cacheId ? 'go on' : 'state';
}
