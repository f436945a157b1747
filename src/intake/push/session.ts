/** Decides the answer to a pusher's hello, and the `bye` for a pusher that lost its shard. */
import type { Arrival, ShardState } from '../../domain/claim.js';
import { parseShardName, type ShardName } from '../../domain/shard.js';
import type { PushOutcome } from '../../domain/push.js';
import { unavailableRetryMs, type ByeReason } from '../../frames/bye.js';
import { protocolVersion, type FrameOf } from '../../frames/frame.js';

/** A pusher arrives for its shard. `position`: the position of its last ack; '' if it has none. */
export type PusherHello = Omit<Arrival, 'nowMs'> & Readonly<{ kind: 'coming'; takesOver: boolean; position: string }>;

const reconnectMs = 100;

export function parsePusherHello(
  { protocol, role, name, process, term, takesOver, position = '' }: FrameOf<'hello'>,
  mayWriteFor: (shard: ShardName) => boolean,
): PusherHello | FrameOf<'bye'> {
  if (protocol < protocolVersion) return bye('unsupported', `this cache supports protocol ${protocolVersion}, not ${protocol}`);
  if (role !== 'shard') return bye('unsupported', `this session does not accept the role ${role}`);
  const shard = parseShardName(name);
  if (shard === undefined) return bye('protocol', 'the name in hello is not the name of a shard');
  if (!mayWriteFor(shard)) return bye('forbidden', `the certificate does not speak for the shard ${shard}`);
  if (process === '') return bye('protocol', 'hello names no process');
  return { kind: 'coming', shard, process, term, takesOver, position };
}

/** The `bye` for a session that did not get its shard, or lost it. */
export function byeTo({ shard, process }: Pick<Arrival, 'shard' | 'process'>, outcome: PushOutcome): FrameOf<'bye'> {
  if (outcome.kind === 'unavailable') return bye('unavailable', outcome.refusal.message, unavailableRetryMs);
  if (outcome.kind !== 'fenced') throw new Error(`no session ends as ${outcome.kind}`);
  const { reason, retryAfterMs } = displaced(process, outcome.holder);
  return bye(reason, fencedBy(outcome.holder, shard), retryAfterMs);
}

/**
 * The end of a session that lost its shard. A later process or a removal fences the pusher for
 * good. If the pusher's own process has the shard at another cache, the pusher reconnects and gets
 * the shard here.
 */
export function displaced(
  process: string,
  holder: ShardState | undefined,
): Readonly<{ reason: ByeReason; retryAfterMs: number | undefined }> {
  const isElsewhere = holder?.process === process && !holder.removed;
  return isElsewhere ? { reason: 'replaced', retryAfterMs: reconnectMs } : { reason: 'fenced', retryAfterMs: undefined };
}

function fencedBy(holder: ShardState | undefined, shard: ShardName): string {
  if (holder === undefined) return `nobody has the shard ${shard}`;
  if (holder.removed) return `the shard ${shard} was removed`;
  const where = holder.via === 'local' ? '' : ' at another cache';
  return `the shard ${shard} now has the term ${holder.term}${where}`;
}

function bye(reason: ByeReason, message: string, retryAfterMs?: number): FrameOf<'bye'> {
  return { kind: 'bye', reason, message, retryAfterMs };
}
