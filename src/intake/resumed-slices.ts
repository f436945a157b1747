/** Which slices a pusher that gets its shard again need not sync. */
import type { PublishedState } from '../domain/published-state.js';
import type { Push, Term } from '../domain/push.js';
import { isResourceVersion } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { PushLane, Revisions } from '../domain/store-port.js';

/** `position`: the position of its last ack; '' if it had none. */
export type Resumed = Readonly<{ shard: ShardName; term: Term; position: string }>;

/**
 * The slices that this term has synced here. If the store does not know the position, it has lost
 * acknowledged changes. Then none of these slices counts as synced, and `lost` gets their number.
 */
export async function resumedSlices(
  {
    store,
    lane,
    lost,
  }: Readonly<{
    store: Readonly<{ state: Pick<PublishedState, 'slicesOf'>; revisions: Pick<Revisions, 'locatePosition'> }>;
    lane: PushLane;
    lost: (slices: number) => void;
  }>,
  { shard, term, position }: Resumed,
): Promise<readonly Slice[]> {
  const synced = [...store.state.slicesOf(shard)].filter(({ syncedTerm }) => syncedTerm === term).map(({ slice }) => slice);
  if (synced.length === 0 || (isResourceVersion(position) && store.revisions.locatePosition(position).kind === 'ours')) return synced;
  await lane.push(synced.map((slice): Push => ({ kind: 'invalidate', slice, by: { kind: 'pusher', term } })));
  lost(synced.length);
  return [];
}
