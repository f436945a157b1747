import type { FrameOf } from '../../src/frames/frame.js';
import { shardName } from '../support/objects.js';

/** Of a shard whose pusher is at the very cache that tells. */
export function aClaimFrame(claim: Partial<FrameOf<'claim'>> = {}): FrameOf<'claim'> {
  const { origin = 'far' } = claim;
  const rank = { incarnation: 5, moves: 0, removed: false, origin };
  return { kind: 'claim', shard: shardName('amber'), ...rank, path: [origin], reached: true, isYours: false, ...claim };
}
