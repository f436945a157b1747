/**
 * Decides whether to accept a write over plain HTTP. Plain writers have no session and send no
 * claims. So this cache itself finds out when a plain writer last wrote, and whether another cache
 * has the shard.
 *
 *   the shard's via              a plain write
 *   none, local                  is accepted; a shard without a via becomes local
 *   local, with a pusher, or     is refused, because the pusher's next sync would undo it; but
 *   held for one                 the shard itself may write, as kcp does beside its agent
 *   a link, seen within holdMs   is refused, and the refusal says where the shard is
 *   none yet, with its origin    as with a link to the parent
 *   at another cache
 *   a link, away for holdMs      takes the shard over
 *
 * A write that changes kept names only (domain/kept-names.ts) is accepted beside a pusher, but
 * takes over no shard.
 *
 * A shard is seen while its pusher is connected somewhere, and whenever one of its changes arrives.
 * A shard whose claim says `held` also counts as seen until a link towards its origin goes down.
 * The committer checks the via once more.
 */
import { isShard, type Caller } from '../../domain/caller.js';
import { isElsewhere, neighbourTowards } from '../../domain/claim.js';
import type { Refusal } from '../../domain/errors.js';
import type { Clock } from '../../domain/ports.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import { childOf, type Neighbour } from '../../domain/via.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { SliceState } from '../../domain/push.js';
import type { PushSessions } from '../push/push-sessions.js';

/**
 * When a shard behind a link was last known to have a pusher or writer, in milliseconds since 1970.
 */
export type SeenElsewhere = (shard: ShardName, neighbour: Neighbour) => number;

/** `own`: the id of this cache. `runningSinceMs`: see RunningSince. */
export type PlainWritesParts = Readonly<{
  own: string;
  known: PublishedState;
  clock: Clock;
  seenMs: SeenElsewhere;
  runningSinceMs: () => number;
  pushers: Pick<PushSessions, 'hasPusher' | 'hasLivePusher' | 'overwritten'>;
}>;

export type Decision =
  | Readonly<{ kind: 'writes'; as: 'takes' | 'bySource' | 'keeps' | undefined }>
  | Readonly<{ kind: 'refused'; refusal: Refusal }>;

export class PlainWrites {
  readonly #parts: PlainWritesParts;
  readonly #holdMs: number;
  /** When a plain writer last wrote to each known shard, even if the write changed nothing. */
  readonly #lastWritesMs = new Map<ShardName, number>();
  /** When another server of this store last reported a plain write to the shard. */
  readonly #lastWritesElsewhereMs = new Map<ShardName, number>();

  constructor(parts: PlainWritesParts, { holdMs }: Readonly<{ holdMs: number }>) {
    this.#parts = parts;
    this.#holdMs = holdMs;
  }

  /** Records a plain write to the shard. A PUT that changes nothing counts, too. */
  recordWrite(shard: ShardName): void {
    if (this.#parts.known.shard(shard) !== undefined) this.#lastWritesMs.set(shard, this.#parts.clock.now());
  }

  recordWriteElsewhere(shard: ShardName): void {
    this.#lastWritesElsewhereMs.set(shard, this.#parts.clock.now());
  }

  /** The last plain write to each shard that the store knows and that is not removed. */
  lastWritesHere(): ReadonlyMap<ShardName, number> {
    for (const writes of [this.#lastWritesMs, this.#lastWritesElsewhereMs])
      for (const shard of writes.keys()) if (this.#parts.known.shard(shard)?.removed !== false) writes.delete(shard);
    return this.#lastWritesMs;
  }

  /**
   * The last plain write to the shard at any server, in milliseconds of the clock. At least
   * `runningSinceMs`, because earlier writes are unknown.
   */
  lastWriteMs(shard: ShardName): number {
    return Math.max(this.#lastWritesMs.get(shard) ?? 0, this.#lastWritesElsewhereMs.get(shard) ?? 0, this.#parts.runningSinceMs());
  }

  /**
   * Accepts a write with a flag for its mutation (`as`, mutation.ts), or refuses it. `keeps`: the
   * write changes kept names only.
   */
  decide(shard: ShardName, caller: Caller, keeps = false): Decision {
    const { own, known, clock, seenMs, runningSinceMs, pushers } = this.#parts;
    const state = known.shard(shard);
    const nowMs = clock.now();
    const isHere = state === undefined || !isElsewhere(state, own);
    if (keeps && isHere) return { kind: 'writes', as: 'keeps' };
    if (state?.via === 'local' && !state.plain && (pushers.hasPusher(shard) || pushers.hasLivePusher(shard, nowMs)))
      return isShard(caller, shard) ? { kind: 'writes', as: 'bySource' } : { kind: 'refused', refusal: writtenByPusher(shard) };
    if (isHere) return { kind: 'writes', as: undefined };
    const neighbour = neighbourTowards(state);
    const lastSeenMs = Math.max(runningSinceMs(), lastChangeMs(known.slicesOf(shard), nowMs), seenMs(shard, neighbour));
    if (!keeps && nowMs - lastSeenMs >= this.#holdMs) return { kind: 'writes', as: 'takes' };
    return { kind: 'refused', refusal: writtenElsewhere(shard, neighbour) };
  }

  /**
   * A pusher that connected before the write was stored does not know of the write, so that pusher
   * must sync the slice again.
   */
  written({ shard, resource }: Slice, as: Decision & { kind: 'writes' }): void {
    const { pushers } = this.#parts;
    if (as.as === undefined && pushers.hasPusher(shard)) pushers.overwritten({ shard, resource });
  }
}

function writtenByPusher(shard: ShardName): Refusal {
  const message = `the shard ${shard} has a pusher: change the object on the shard, and the pusher brings it here`;
  return { reason: 'Conflict', message };
}

function writtenElsewhere(shard: ShardName, neighbour: Neighbour): Refusal {
  const child = childOf(neighbour);
  const where = child === undefined ? 'a cache above or beside this one' : `the child ${child} or a cache below it`;
  return { reason: 'Conflict', message: `the shard ${shard} is written at ${where}`, details: { retryAfterSeconds: 1 } };
}

/**
 * When any of these slices changed last, in milliseconds of the clock; 0 if none ever did. Ignores
 * times in the future, written by an earlier process with a fast clock, because callers count from
 * RunningSince at the earliest. A caller that removes something because of its age should instead
 * wait until that time has passed, as shard-removal.ts does.
 */
export function lastChangeMs(slices: Iterable<Pick<SliceState, 'changedMs'>>, nowMs: number): number {
  let lastMs = 0;
  for (const { changedMs } of slices) if (changedMs <= nowMs && changedMs > lastMs) lastMs = changedMs;
  return lastMs;
}
