/**
 * The local shards whose pushers may keep them. The claim of such a shard says that it is held, so
 * that no cache of the tree gives the shard to another pusher. Reports on slices cannot say this: a
 * pusher may have no slices yet, none that cross a link, or no source for a moment.
 *
 * This class sees at once when a pusher connects or disconnects. Within `checkIntervalMs` it sees
 * when a pusher falls silent or has had no source for too long.
 */
import { every } from '../domain/base/promises.js';
import type { Clock, Subscription } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { PublishedState } from '../domain/published-state.js';
import type { PushSessions } from '../intake/push/push-sessions.js';

export type PushedShardsParts = Readonly<{
  known: Pick<PublishedState, 'shard' | 'shards'>;
  pushers: Pick<PushSessions, 'keeps' | 'follow'>;
  clock: Clock;
  /** Called when the shard becomes held, or is no longer held. */
  changed: (shard: ShardName) => void;
}>;

const checkIntervalMs = 1_000;

export class PushedShards {
  readonly #parts: PushedShardsParts;
  readonly #subscription: Subscription;
  #held: ReadonlySet<ShardName> = new Set();
  readonly #cancelCheck: () => void;

  constructor(parts: PushedShardsParts) {
    this.#parts = parts;
    this.#subscription = parts.pushers.follow((slices) => (slices.length === 0 ? this.#check() : undefined));
    this.#cancelCheck = every(parts.clock, checkIntervalMs, () => this.#check());
  }

  has(shard: ShardName): boolean {
    const { known, pushers, clock } = this.#parts;
    const state = known.shard(shard);
    return state?.via === 'local' && !state.plain && pushers.keeps(shard, clock.now());
  }

  close(): void {
    this.#subscription.cancel();
    this.#cancelCheck();
  }

  #check(): void {
    const before = this.#held;
    const now = new Set<ShardName>();
    for (const { shard } of this.#parts.known.shards) if (this.has(shard)) now.add(shard);
    this.#held = now;
    for (const shard of now) if (!before.has(shard)) this.#parts.changed(shard);
    for (const shard of before) if (!now.has(shard)) this.#parts.changed(shard);
  }
}
