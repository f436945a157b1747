import type { ShardState } from '../domain/claim.js';
import type { Incarnation } from '../domain/push.js';
import type { ByeReason } from '../frames/bye.js';

const claimAgainMs = 100;

/**
 * How the session of a pusher ends that does not have its shard any more. A later process or a removal fences it for good; where its own process
 * is only known elsewhere, it comes back and claims the shard anew, and is newer.
 */
export function displaced(
  incarnation: Incarnation,
  holder: ShardState | undefined,
): Readonly<{ reason: ByeReason; retryAfterMs: number | undefined }> {
  const isKnownElsewhere = holder?.incarnation === incarnation && !holder.removed;
  return isKnownElsewhere ? { reason: 'replaced', retryAfterMs: claimAgainMs } : { reason: 'fenced', retryAfterMs: undefined };
}
