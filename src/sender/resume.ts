/**
 * Decides, once a cache has said welcome, how each slice continues: with what it had still to tell, or with a statement.
 *
 * U1 A slice goes on only where its last statement is known to be whole: acknowledged by this very cache in this life of its
 *    store, still held to be stated there, and with its source open since.
 * U2 A begin or an end that was sent and not acknowledged may have arrived or not; sent again it could end a statement of which
 *    a part is missing. Such a slice is stated: from a begin to the acknowledgement of its end it counts as stated nowhere.
 */

/** A cache in one life of its store: what it acknowledged in another may be gone. */
export type CacheLife = Readonly<{ cacheId: string; epoch: number }>;

export type SliceKnowledge = Readonly<{
  /** Whether its source is being read. */
  open: boolean;
  /** Where the end of its last statement was acknowledged; undefined from the sending of a begin on, and when there was none. */
  statedAt: CacheLife | undefined;
}>;

/** `statedThere`: whether the cache names the slice as stated by this incarnation. */
export function resume(
  { open, statedAt }: SliceKnowledge,
  { life, statedThere }: Readonly<{ life: CacheLife; statedThere: boolean }>,
): 'go on' | 'state' {
  return open && statedThere && isSameLife(statedAt, life) ? 'go on' : 'state';
}

export function isSameLife(one: CacheLife | undefined, other: CacheLife): boolean {
  return one !== undefined && one.cacheId === other.cacheId && one.epoch === other.epoch;
}
