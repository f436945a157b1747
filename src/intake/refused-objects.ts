/**
 * Tracks which objects of a link's slices this end lacks because it refused them. It is updated
 * with every admitted frame.
 */
import type { FrameOf, PushedKey } from '../frames/frame.js';
import type { ReceiverState } from './receiver-state.js';

/**
 * Says whether the slice starts to lack objects, or lacks none any more. During a sync it returns
 * undefined, because the `end` settles that.
 */
export function trackLacking(
  { slices, lacking }: ReceiverState,
  frame: FrameOf<'put' | 'delete'>,
  refused: ReadonlySet<PushedKey>,
): 'lacks' | 'whole' | undefined {
  const { slice } = frame;
  const lacked = lacking.lacks(slice);
  // The sender leaves out a body that is too large for this end. What this end holds of that object
  // may be outdated.
  const bodiless = frame.kind === 'put' ? frame.objects.filter(({ body }) => body === undefined) : [];
  const missing = new Set<PushedKey>([...refused, ...bodiless]);
  for (const key of frame.kind === 'put' ? frame.objects : frame.keys)
    if (missing.has(key)) lacking.add(slice, key);
    else lacking.remove(slice, key);
  const lacks = lacking.lacks(slice);
  const open = slices.of(slice);
  if (open?.phase === 'syncing' && lacks) slices.set({ ...open, hasLacked: true });
  if (lacks === lacked || open?.phase === 'syncing') return undefined;
  return lacks ? 'lacks' : 'whole';
}
