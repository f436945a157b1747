/**
 * Removes what a cache holds of slices that the pusher of their shard no longer names: as the end of an empty sync would, in the name of
 * the pusher, so that the committer fences one that has lost its shard meanwhile. A removal of much waits (held-removals.ts); until then the
 * slice counts as not synced.
 */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Refusal } from '../domain/errors.js';
import type { PushLane, Pushes } from '../domain/ports.js';
import type { Push, Speaker } from '../domain/push.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { HeldRemovals } from './held-removals.js';

export type UnnamedParts = Readonly<{
  store: Pick<Pushes, 'slices'>;
  lane: PushLane;
  removals: Pick<HeldRemovals, 'holds' | 'forget'>;
  log: Pick<BoundedLog, 'info'>;
}>;

const reason = 'unnamed';

/** `isOver`: the session has ended, and another one of the same process may have named more since. */
export type Unnamed = Readonly<{ shard: ShardName; by: Speaker; isNamed: (slice: Slice) => boolean; isOver: () => boolean }>;

/** Returns why nothing could be done: the caller asks again then. If this is fenced, the shard's present pusher asks. */
export async function removeUnnamed(
  { shard, by, isNamed, isOver }: Unnamed,
  { store, lane, removals, log }: UnnamedParts,
): Promise<Refusal | undefined> {
  await lane.room();
  const slices = (await store.slices()).filter(({ slice }) => slice.shard === shard);
  if (isOver()) return undefined;
  // Nothing may come between here and the queue: a slice that is named meanwhile must begin after this.
  const pushes: Push[] = [];
  const removed: Slice[] = [];
  for (const { slice, objects } of slices) {
    if (isNamed(slice)) removals.forget(slice);
    else if (objects === 0) continue;
    else if (removals.holds({ slice, reason, removes: objects, objects })) pushes.push({ kind: 'invalidate', slice, by });
    else {
      removed.push(slice);
      pushes.push({ kind: 'begin', slice, by }, { kind: 'end', slice, by, filterHash: '' });
    }
  }
  if (pushes.length === 0) return undefined;
  const outcomes = await lane.push(pushes);
  const failed = outcomes.find((outcome) => outcome.kind === 'unavailable');
  if (failed !== undefined || outcomes.some(({ kind }) => kind === 'fenced')) return failed?.refusal;
  for (const slice of removed) {
    removals.forget(slice);
    log.info('push.unnamed-removed', { slice: formatSlice(slice) });
  }
  return undefined;
}
