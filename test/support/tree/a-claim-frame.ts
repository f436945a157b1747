import type { FrameOf } from '../../../src/frames/frame.js';
import { shardName } from '../objects.js';
import { aProcess } from '../pushes.js';

/** A claim of a shard whose pusher is connected to the cache that sends the claim. */
export function aClaimFrame(claim: Partial<FrameOf<'claim'>> = {}): FrameOf<'claim'> {
  const { origin = 'far' } = claim;
  const { term = 5 } = claim;
  const given = { term, process: aProcess(term), removed: false, origin };
  return { kind: 'claim', shard: shardName('amber'), ...given, path: [origin], reached: true, held: false, isYours: false, ...claim };
}
