/** What a pusher that has a shard again need not sync. */
import type { PublishedState } from '../domain/published-state.js';
import type { Push, Term } from '../domain/push.js';
import { isResourceVersion } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { PushLane, Revisions } from '../domain/store-port.js';

/** `position`: of the last ack that it had; '' when it had none. */
export type Resumed = Readonly<{ shard: ShardName; term: Term; position: string }>;

/** Slices that this term has synced here. None, and it is noted so, when some of what it was acknowledged is `lost`: so many slices count as not synced. */
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
