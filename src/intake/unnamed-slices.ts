/**
 * Removes what a cache holds of slices that the pusher of their shard names no longer: as the end of an empty sync would, in the name of
 * the pusher, so that the committer fences one that has lost its shard meanwhile. What is much of it waits (held-removals.ts), and counts
 * as not synced as long as it does.
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

/** Tells why nothing could be done: then it is to be asked for again. One that is fenced is asked for by who has the shard now. */
export async function removeUnnamed(
  { shard, by, isNamed }: Readonly<{ shard: ShardName; by: Speaker; isNamed: (slice: Slice) => boolean }>,
  { store, lane, removals, log }: UnnamedParts,
): Promise<Refusal | undefined> {
  await lane.room();
  const slices = (await store.slices()).filter(({ slice }) => slice.shard === shard);
  // From here to the queue nothing may come between: a slice that is named meanwhile is begun behind that.
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
