/**
 * Pushers that wait for their shard. Two pushers for one shard are normal: a spare, or the next one
 * in a rolling update. A pusher that connects for the first time waits while another process has
 * the shard:
 *
 *   the process that has the shard     the new pusher waits until
 *   is connected here                  that one is gone or silent, or has had no source for
 *                                      `sourceFailedMaxMs` (push-sessions.ts)
 *   had it here before this start      that one is back, or five seconds after the start
 *   is at a cache that is reached      the shard's claim has not said `held` for `seenMaxMs`
 *   is at a cache that is not reached  its origin was out of reach for `holdMs`
 *   is a plain writer, or nobody       – (it does not wait)
 *
 * The pushers that wait for one shard get it one after the other, in order of arrival. A process
 * that has the shard, but lost its welcome, is first. A pusher that had the shard earlier never
 * waits: it is fenced if another process got the shard since. A waiting pusher is fenced when its
 * shard is removed.
 *
 * Bound: the sessions that may be open.
 */
import { isElsewhere, neighbourTowards, type ShardState } from '../../domain/claim.js';
import type { Refusal } from '../../domain/errors.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { ShardName } from '../../domain/shard.js';
import type { Neighbour } from '../../domain/via.js';
import type { SeenElsewhere } from '../writes/plain-writes.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { PushSessions } from './push-sessions.js';

export type StandbysParts = Readonly<{
  /** The id of this cache. */
  own: string;
  known: Pick<PublishedState, 'shard'>;
  sessions: Pick<PushSessions, 'hasLivePusher' | 'keeps' | 'follow'>;
  seenMs: SeenElsewhere;
  /** See RunningSince. */
  runningSinceMs: () => number;
  /** Whether this server has the links of the cache. */
  hasLinks: () => boolean;
  /**
   * Whether every link towards the origin of the shard is up, and this cache's link to `neighbour`
   * answers.
   */
  isReached: (shard: ShardName, neighbour: Neighbour) => boolean;
  clock: Clock;
}>;

/** `isNext`: it is this pusher's turn. */
type Waiter = { readonly process: string; isNext: boolean; start: () => void };

const beyond: Refusal = {
  reason: 'ServiceUnavailable',
  message: 'only the server of this cache that has its links knows whether another cache has the shard',
};

const checkIntervalMs = 100;
/**
 * Covers two delays. A claim carries a pusher's term before it says that the shard is held. A link
 * that has just opened has not sent its claims yet.
 */
const seenMaxMs = 1_500;

export class Standbys {
  readonly #parts: StandbysParts;
  readonly #holdMs: number;
  readonly #waiting = new Map<ShardName, Waiter[]>();
  readonly #subscription: Subscription;
  #cancelCheck: (() => void) | undefined;

  constructor(parts: StandbysParts, { holdMs }: Readonly<{ holdMs: number }>) {
    this.#parts = parts;
    this.#holdMs = holdMs;
    this.#subscription = parts.sessions.follow(() => this.#check());
  }

  /** Does not count the pusher whose turn it is. */
  count(shard: ShardName): number {
    return this.#waiting.get(shard)?.filter(({ isNext }) => !isNext).length ?? 0;
  }

  /**
   * Why no pusher can wait here: the shard is at another cache, and another server of this cache
   * holds the links. The pusher reconnects, perhaps to that server.
   */
  refuses(shard: ShardName): Refusal | undefined {
    const { own, known, hasLinks } = this.#parts;
    return !hasLinks() && isElsewhere(known.shard(shard), own) ? beyond : undefined;
  }

  /**
   * Runs `take` in this pusher's turn, once no other process has the shard. Calls `waits` first if
   * the pusher must wait. `removed`: the shard was removed while the pusher waited. Returns
   * undefined if `gone` resolves first.
   */
  async inTurn<T>(
    { shard, process }: Readonly<{ shard: ShardName; process: string }>,
    take: (removed: ShardState | undefined) => T | Promise<T>,
    { waits, gone }: Readonly<{ waits: () => void; gone: Promise<unknown> }>,
  ): Promise<T | undefined> {
    const queue = this.#waiting.get(shard) ?? [];
    this.#waiting.set(shard, queue);
    const cameBehind = this.#parts.known.shard(shard)?.term ?? 0;
    const waiter: Waiter = { process, isNext: false, start: () => {} };
    const free = new Promise<'free'>((resolve) => (waiter.start = () => resolve('free')));
    queue.push(waiter);
    try {
      this.#check();
      if (!waiter.isNext) waits();
      if ((await Promise.race([free, gone.then(() => 'gone' as const)])) === 'gone') return undefined;
      const state = this.#parts.known.shard(shard);
      return await take(state?.removed === true && state.term > cameBehind ? state : undefined);
    } finally {
      queue.splice(queue.indexOf(waiter), 1);
      if (queue.length === 0) this.#waiting.delete(shard);
      this.#check();
    }
  }

  close(): void {
    this.#subscription.cancel();
    this.#cancelCheck?.();
  }

  #check(): void {
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
    for (const [shard, queue] of this.#waiting) {
      if (queue.some(({ isNext }) => isNext)) continue;
      const has = this.#parts.known.shard(shard)?.process;
      const next = queue.find(({ process }) => process === has) ?? queue[0];
      if (next === undefined || this.#isHeld(shard, next)) continue;
      next.isNext = true;
      next.start();
    }
    if (this.#waiting.size > 0) this.#cancelCheck = this.#parts.clock.after(checkIntervalMs, () => this.#check());
  }

  /** Whether another process has the shard. */
  #isHeld(shard: ShardName, { process }: Waiter): boolean {
    const { own, known, sessions, seenMs, runningSinceMs, isReached, clock } = this.#parts;
    const nowMs = clock.now();
    const state = known.shard(shard);
    if (state === undefined || state.removed || state.plain || state.process === process) return false;
    if (sessions.hasLivePusher(shard, nowMs)) return true;
    if (!isElsewhere(state, own)) return state.via === 'local' && sessions.keeps(shard, nowMs);
    const neighbour = neighbourTowards(state);
    const lastSeenMs = Math.max(runningSinceMs(), seenMs(shard, neighbour));
    return nowMs - lastSeenMs < (isReached(shard, neighbour) ? seenMaxMs : this.#holdMs);
  }
}
