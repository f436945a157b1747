/**
 * Which local shards have a pusher that may keep them. Their claims say so (held), so that no cache of the tree gives such a shard to a newcomer. The
 * freshness of slices does not show it: a pusher may have no slices yet, none that cross a link, or no source for a moment.
 *
 * A pusher that comes or goes is noticed at once; one that falls silent, or has had no source for too long, within `lookIntervalMs`.
 */
import type { Clock, Subscription } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { PublishedState } from '../domain/published-state.js';
import type { PushSessions } from '../intake/push-sessions.js';

export type HeldShardsParts = Readonly<{
  known: Pick<PublishedState, 'shard' | 'shards'>;
  pushers: Pick<PushSessions, 'keeps' | 'follow'>;
  clock: Clock;
  /** A shard is held now, or is no longer. */
  changed: (shard: ShardName) => void;
}>;

const lookIntervalMs = 1_000;

export class HeldShards {
  readonly #parts: HeldShardsParts;
  readonly #subscription: Subscription;
  #held: ReadonlySet<ShardName> = new Set();
  #cancelLook = (): void => {};

  constructor(parts: HeldShardsParts) {
    this.#parts = parts;
    this.#subscription = parts.pushers.follow((slices) => (slices.length === 0 ? this.#look() : undefined));
    this.#lookLater();
  }

  isHeld(shard: ShardName): boolean {
    const { known, pushers, clock } = this.#parts;
    const state = known.shard(shard);
    return state?.via === 'local' && !state.plain && pushers.keeps(shard, clock.now());
  }

  close(): void {
    this.#subscription.cancel();
    this.#cancelLook();
  }

  #lookLater(): void {
    this.#cancelLook = this.#parts.clock.after(lookIntervalMs, () => {
      this.#lookLater();
      this.#look();
    });
  }

  #look(): void {
    const before = this.#held;
    const now = new Set<ShardName>();
    for (const { shard } of this.#parts.known.shards) if (this.isHeld(shard)) now.add(shard);
    this.#held = now;
    for (const shard of now) if (!before.has(shard)) this.#parts.changed(shard);
    for (const shard of before) if (!now.has(shard)) this.#parts.changed(shard);
  }
}
