import type { ShardState } from '../domain/claim.js';
import type { ByeReason } from '../frames/bye.js';

const comeAgainMs = 100;

/**
 * How the session of a pusher ends that does not have its shard any more. A later process or a removal fences it for good; where its own process
 * has the shard at another cache, it comes again, and has it here.
 */
export function displaced(
  process: string,
  holder: ShardState | undefined,
): Readonly<{ reason: ByeReason; retryAfterMs: number | undefined }> {
  const isElsewhere = holder?.process === process && !holder.removed;
  return isElsewhere ? { reason: 'replaced', retryAfterMs: comeAgainMs } : { reason: 'fenced', retryAfterMs: undefined };
}
