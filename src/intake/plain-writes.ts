/**
 * Whether a write over plain HTTP goes ahead. Plain writers have no session and claim nothing. So this cache has to find out itself when one last
 * wrote, and whether the shard that it writes to lives elsewhere.
 *
 *   the shard's via              a plain write
 *   none, local                  goes ahead; with none, the shard becomes local
 *   local, and has a pusher,     is refused: what the cache holds is what that has pushed; but goes ahead if the shard itself writes, as kcp does
 *   or is held for one           beside its agent
 *   a link, seen within holdMs   is refused, with where the shard is; so is one whose origin is another cache and that is nobody's yet
 *   a link, away for holdMs      takes the shard over
 *
 * What changes kept names alone (domain/kept-names.ts) goes ahead beside a pusher, and takes no shard over.
 *
 * Seen: its pusher is connected somewhere, or a change of it has come, or the link it comes over has not been down for long. The committer
 * checks the via once more.
 */
import { isShard, type Caller } from '../domain/caller.js';
import { isElsewhere, wayTo } from '../domain/claim.js';
import type { Refusal } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import { childOf, type Neighbour } from '../domain/via.js';
import type { PublishedState } from '../domain/published-state.js';
import { lastChangeMs } from './last-change.js';
import type { PushSessions } from './push-sessions.js';

/** What links report on a shard that lives behind one: when somebody was known to have it, in milliseconds since 1970. */
export type SeenElsewhere = (shard: ShardName, neighbour: Neighbour) => number;

/** `own`: the id of this cache. `runningSinceMs`: see RunningSince. */
export type PlainWritesParts = Readonly<{
  own: string;
  known: PublishedState;
  clock: Clock;
  seenMs: SeenElsewhere;
  runningSinceMs: () => number;
  pushers: Pick<PushSessions, 'hasPusher' | 'isHeld' | 'overwritten'>;
}>;

export type Judgement =
  | Readonly<{ kind: 'writes'; as: 'takes' | 'bySource' | 'keeps' | undefined }>
  | Readonly<{ kind: 'refused'; refusal: Refusal }>;

export class PlainWrites {
  readonly #parts: PlainWritesParts;
  readonly #holdMs: number;
  /** When a plain writer last wrote to a shard, whether or not that changed anything. Of shards that are known. */
  readonly #heardMs = new Map<ShardName, number>();
  /** The same of other servers of this store. */
  readonly #heardElsewhereMs = new Map<ShardName, number>();

  constructor(parts: PlainWritesParts, { holdMs }: Readonly<{ holdMs: number }>) {
    this.#parts = parts;
    this.#holdMs = holdMs;
  }

  /** A plain writer writes to the shard: the same PUT again is a sign of life as well. */
  hear(shard: ShardName): void {
    if (this.#parts.known.shard(shard) !== undefined) this.#heardMs.set(shard, this.#parts.clock.now());
  }

  /** Another server has heard one. */
  hearElsewhere(shard: ShardName): void {
    this.#heardElsewhereMs.set(shard, this.#parts.clock.now());
  }

  /** When one wrote to each shard at this server. */
  get heardHere(): ReadonlyMap<ShardName, number> {
    return this.#heardMs;
  }

  /** When one last did, in milliseconds of the clock; if none has, since when this process could have noticed. */
  heardMs(shard: ShardName): number {
    return Math.max(this.#heardMs.get(shard) ?? 0, this.#heardElsewhereMs.get(shard) ?? 0, this.#parts.runningSinceMs());
  }

  /** As what a write goes ahead (mutation.ts), or why it may not. `keeps`: it changes kept names alone. */
  judge(shard: ShardName, caller: Caller, keeps = false): Judgement {
    const { own, known, clock, seenMs, runningSinceMs, pushers } = this.#parts;
    const state = known.shard(shard);
    const nowMs = clock.now();
    const isHere = state === undefined || !isElsewhere(state, own);
    if (keeps && isHere) return { kind: 'writes', as: 'keeps' };
    if (state?.via === 'local' && !state.plain && (pushers.hasPusher(shard) || pushers.isHeld(shard, nowMs)))
      return isShard(caller, shard) ? { kind: 'writes', as: 'bySource' } : { kind: 'refused', refusal: writtenByPusher(shard) };
    if (isHere) return { kind: 'writes', as: undefined };
    const neighbour = wayTo(state);
    const lastSeenMs = Math.max(runningSinceMs(), lastChangeMs(known.slicesOf(shard), nowMs), seenMs(shard, neighbour));
    if (!keeps && nowMs - lastSeenMs >= this.#holdMs) return { kind: 'writes', as: 'takes' };
    return { kind: 'refused', refusal: writtenElsewhere(shard, neighbour) };
  }

  /** A write that was judged to go ahead is stored. Where a pusher has come meanwhile, it does not know of that. */
  written({ shard, resource }: Slice, as: Judgement & { kind: 'writes' }): void {
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
