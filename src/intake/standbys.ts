/**
 * Pushers that wait for their shard. Two for one shard are the normal case: a spare, or the next one in a rolling update. A pusher that comes for the
 * first time waits while another has the shard:
 *
 *   who has the shard                         it waits until
 *   is connected here                         that is gone or silent, or has had no source for `sourceFailedMs`
 *   had it here before this start             it is back, or five seconds after the start
 *   is at another cache that is reached       its claim has not said that it is held for `seenMaxMs`
 *   is at another cache that is not reached   that has been so for `holdMs`
 *   a plain writer, or nobody                 –
 *
 * Those who wait for one shard get it one after the other, in the order in which they came. The process that has the shard, and only lost its
 * welcome, waits for none of them. A pusher that had the shard before never waits: if another came since, it is fenced; so is one that waits when
 * the shard is removed. Bound: the sessions that may be open.
 */
import { isElsewhere, wayTo, type ShardState } from '../domain/claim.js';
import type { Refusal } from '../domain/errors.js';
import type { Clock, Subscription } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour } from '../domain/via.js';
import type { SeenElsewhere } from './plain-writes.js';
import type { PublishedState } from '../domain/published-state.js';
import type { PushSessions } from './push-sessions.js';

export type StandbysParts = Readonly<{
  /** The id of this cache. */
  own: string;
  known: Pick<PublishedState, 'shard'>;
  sessions: Pick<PushSessions, 'isHeld' | 'keeps' | 'follow'>;
  seenMs: SeenElsewhere;
  /** See RunningSince. */
  runningSinceMs: () => number;
  /** Whether this server has the links of its cache. */
  hasLinks: () => boolean;
  /** Whether every link to the origin of a shard is up, and the one to this cache answers. */
  isReached: (shard: ShardName, neighbour: Neighbour) => boolean;
  clock: Clock;
}>;

/** `isFree`: it is its turn. */
type Waiter = { readonly process: string; isFree: boolean; go: () => void };

const beyond: Refusal = {
  reason: 'ServiceUnavailable',
  message: 'whether another cache has the shard is known to another server of this one',
};

const lookIntervalMs = 100;
/** A pusher's term is claimed before the claim says that it is held, and a link that has just opened has claimed nothing yet. */
const seenMaxMs = 1_500;

export class Standbys {
  readonly #parts: StandbysParts;
  readonly #holdMs: number;
  readonly #waiting = new Map<ShardName, Waiter[]>();
  readonly #subscription: Subscription;
  #cancelLook: (() => void) | undefined;

  constructor(parts: StandbysParts, { holdMs }: Readonly<{ holdMs: number }>) {
    this.#parts = parts;
    this.#holdMs = holdMs;
    this.#subscription = parts.sessions.follow(() => this.#look());
  }

  /** How many wait for the shard. */
  count(shard: ShardName): number {
    return this.#waiting.get(shard)?.filter(({ isFree }) => !isFree).length ?? 0;
  }

  /** Why nobody can wait here: the shard is at another cache, and another server of this one has the links. Its pusher then comes to whichever it reaches. */
  refuses(shard: ShardName): Refusal | undefined {
    const { own, known, hasLinks } = this.#parts;
    return !hasLinks() && isElsewhere(known.shard(shard), own) ? beyond : undefined;
  }

  /**
   * Runs `take` once nobody has the shard and it is this pusher's turn; `waits` first, if that is not at once. `removed`: the shard was removed
   * meanwhile. Undefined when `gone` resolves before.
   */
  async inTurn<T>(
    { shard, process }: Readonly<{ shard: ShardName; process: string }>,
    take: (removed: ShardState | undefined) => T | Promise<T>,
    { waits, gone }: Readonly<{ waits: () => void; gone: Promise<unknown> }>,
  ): Promise<T | undefined> {
    const queue = this.#waiting.get(shard) ?? [];
    this.#waiting.set(shard, queue);
    const cameBehind = this.#parts.known.shard(shard)?.term ?? 0;
    const waiter: Waiter = { process, isFree: false, go: () => {} };
    const free = new Promise<'free'>((resolve) => (waiter.go = () => resolve('free')));
    queue.push(waiter);
    try {
      this.#look();
      if (!waiter.isFree) waits();
      if ((await Promise.race([free, gone.then(() => 'gone' as const)])) === 'gone') return undefined;
      const state = this.#parts.known.shard(shard);
      return await take(state?.removed === true && state.term > cameBehind ? state : undefined);
    } finally {
      queue.splice(queue.indexOf(waiter), 1);
      if (queue.length === 0) this.#waiting.delete(shard);
      this.#look();
    }
  }

  close(): void {
    this.#subscription.cancel();
    this.#cancelLook?.();
  }

  #look(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    for (const [shard, queue] of this.#waiting) {
      if (queue.some(({ isFree }) => isFree)) continue;
      const has = this.#parts.known.shard(shard)?.process;
      const next = queue.find(({ process }) => process === has) ?? queue[0];
      if (next === undefined || this.#isHeld(shard, next)) continue;
      next.isFree = true;
      next.go();
    }
    if (this.#waiting.size > 0) this.#cancelLook = this.#parts.clock.after(lookIntervalMs, () => this.#look());
  }

  /** By another process. */
  #isHeld(shard: ShardName, { process }: Waiter): boolean {
    const { own, known, sessions, seenMs, runningSinceMs, isReached, clock } = this.#parts;
    const nowMs = clock.now();
    const state = known.shard(shard);
    if (state === undefined || state.removed || state.plain || state.process === process) return false;
    if (sessions.isHeld(shard, nowMs)) return true;
    if (!isElsewhere(state, own)) return state.via === 'local' && sessions.keeps(shard, nowMs);
    const neighbour = wayTo(state);
    const lastSeenMs = Math.max(runningSinceMs(), seenMs(shard, neighbour));
    return nowMs - lastSeenMs < (isReached(shard, neighbour) ? seenMaxMs : this.#holdMs);
  }
}
