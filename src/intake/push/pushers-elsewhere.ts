/**
 * The pushers that are connected to other servers of the same store, and since when each is
 * connected or gone. A server reports a new pusher a moment after it has given the shard to that
 * pusher. Until that report arrives, the shard counts as held.
 *
 * If the server of a pusher vanishes, the shard counts as held for a while. The server's lease may
 * have ended although server and pusher are well; the server then joins again.
 *
 * Bound: one entry for each shard that a pusher had, or was given, at another server since the
 * start.
 */
import { isDeepStrictEqual } from 'node:util';
import { Listeners } from '../../domain/base/listeners.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { PeerPusher, PeerState, Peers } from '../../domain/store-port.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';

export type PushersElsewhereParts = Readonly<{
  peers: Pick<Peers, 'others' | 'follow'>;
  state: Pick<PublishedState, 'follow' | 'slicesOf'>;
  clock: Pick<Clock, 'now'>;
}>;

/** `pusher`: undefined if none has been connected since `sinceMs`. */
export type PusherElsewhere = Readonly<{ pusher: PeerPusher | undefined; sinceMs: number }>;

/** Longer than a server takes to report a new pusher. */
const reportMsMax = 2_000;
/**
 * Longer than a server takes to notice that its lease has ended, and to report its pushers again.
 */
const rejoinMsMax = 5_000;

export class PushersElsewhere {
  readonly #parts: PushersElsewhereParts;
  readonly #found = new Map<ShardName, PusherElsewhere>();
  readonly #heldUntilMs = new Map<ShardName, number>();
  #servers: ReadonlyMap<string, PeerState> = new Map();
  readonly #listeners = new Listeners<readonly Slice[]>();
  readonly #subscriptions: readonly Subscription[];

  constructor(parts: PushersElsewhereParts) {
    this.#parts = parts;
    const { peers, state, clock } = parts;
    this.#subscriptions = [
      peers.follow(() => this.#check()),
      state.follow(({ shards }) => {
        if (peers.others.size === 0) return;
        for (const { shard, via, plain, removed } of shards)
          if (via === 'local' && !plain && !removed) this.#heldUntilMs.set(shard, clock.now() + reportMsMax);
      }),
    ];
    this.#check();
  }

  /** Undefined if no other server has had a pusher of the shard since the start. */
  of(shard: ShardName): PusherElsewhere | undefined {
    return this.#found.get(shard);
  }

  hasLivePusher(shard: ShardName, nowMs: number): boolean {
    return this.#found.get(shard)?.pusher?.isHeld === true || nowMs < (this.#heldUntilMs.get(shard) ?? 0);
  }

  *present(): Generator<ShardName> {
    for (const [shard, { pusher }] of this.#found) if (pusher !== undefined) yield shard;
  }

  /**
   * Calls `listener` when pushers of other servers may have changed, with the slices of those that
   * connected or reported something new.
   */
  follow(listener: (slices: readonly Slice[]) => void): Subscription {
    return this.#listeners.subscribe(listener);
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.cancel();
  }

  #check(): void {
    const { peers, state, clock } = this.#parts;
    const nowMs = clock.now();
    const servers = new Map(peers.others);
    for (const [id, { pushers }] of this.#servers)
      if (!servers.has(id)) for (const [shard, { isHeld }] of pushers) if (isHeld) this.#heldUntilMs.set(shard, nowMs + rejoinMsMax);
    this.#servers = servers;
    const told = new Map([...servers.values()].flatMap(({ pushers }) => [...pushers]));
    const reported: Slice[] = [];
    for (const [shard, pusher] of told) {
      const before = this.#found.get(shard);
      if (!isDeepStrictEqual(before?.pusher, pusher)) for (const { slice } of state.slicesOf(shard)) reported.push(slice);
      this.#found.set(shard, { pusher, sinceMs: before?.pusher?.peer === pusher.peer ? before.sinceMs : nowMs });
    }
    for (const [shard, { pusher }] of this.#found)
      if (pusher !== undefined && !told.has(shard)) this.#found.set(shard, { pusher: undefined, sinceMs: nowMs });
    this.#listeners.notify(reported);
  }
}
