/** Which objects of a link's slices this end lacks, because it refused them: noted with each frame that is admitted. */
import type { FrameOf, PushedKey } from '../frames/frame.js';
import type { ReceiverState } from './receiver-state.js';

/** Whether something has come to be lacking of the slice, or is lacking no more, behind its end. In a sync its end says so. */
export function noteRefused(
  { slices, lacking }: ReceiverState,
  frame: FrameOf<'put' | 'delete'>,
  refused: ReadonlySet<PushedKey>,
): 'lacks' | 'whole' | undefined {
  const { slice } = frame;
  const lacked = lacking.lacks(slice);
  // An object without its body is too large for this end: what is held of it is not what there is.
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
