/** Decides how a pusher's session begins and ends: what its hello comes to, and why it has to go whose shard another process has. */
import type { Arrival, ShardState } from '../domain/claim.js';
import { parseShardName, type ShardName } from '../domain/shard.js';
import type { PushOutcome } from '../domain/push.js';
import { unavailableRetryMs, type ByeReason } from '../frames/bye.js';
import { protocolVersion, type FrameOf } from '../frames/frame.js';

/** A pusher that comes for its shard. `position`: up to where it was acknowledged; '' when it does not know. */
export type Coming = Omit<Arrival, 'nowMs'> & Readonly<{ kind: 'coming'; takesOver: boolean; position: string }>;

const comeAgainMs = 100;

export function comingOf(
  { protocol, role, name, process, term, takesOver, position = '' }: FrameOf<'hello'>,
  mayWriteFor: (shard: ShardName) => boolean,
): Coming | FrameOf<'bye'> {
  if (protocol < protocolVersion) return bye('unsupported', `protocol ${protocol} is not spoken here, ${protocolVersion} is`);
  if (role !== 'shard') return bye('unsupported', `the role ${role} is not taken here`);
  const shard = parseShardName(name);
  if (shard === undefined) return bye('protocol', 'hello names no shard');
  if (!mayWriteFor(shard)) return bye('forbidden', `the certificate does not speak for the shard ${shard}`);
  if (process === '') return bye('protocol', 'hello names no process');
  return { kind: 'coming', shard, process, term, takesOver, position };
}

/** Why a session ends that was not given its shard, or lost it. */
export function byeTo({ shard, process }: Pick<Arrival, 'shard' | 'process'>, outcome: PushOutcome): FrameOf<'bye'> {
  switch (outcome.kind) {
    case 'fenced': {
      const { reason, retryAfterMs } = displaced(process, outcome.holder);
      return bye(reason, fencedBy(outcome.holder, shard), retryAfterMs);
    }
    case 'unavailable':
      return bye('unavailable', outcome.refusal.message, unavailableRetryMs);
    default:
      throw new Error(`no session ends as ${outcome.kind}`);
  }
}

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

function fencedBy(holder: ShardState | undefined, shard: ShardName): string {
  if (holder === undefined) return `nobody has the shard ${shard}`;
  if (holder.removed) return `the shard ${shard} was removed`;
  const where = holder.via === 'local' ? '' : ' at another cache';
  return `the shard ${shard} belongs to the term ${holder.term}${where}`;
}

function bye(reason: ByeReason, message: string, retryAfterMs?: number): FrameOf<'bye'> {
  return { kind: 'bye', reason, message, retryAfterMs };
}
