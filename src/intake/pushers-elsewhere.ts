/**
 * The pushers that are connected to other servers of the same store, and since when each is there or gone. A server that has just given a shard to a pusher
 * tells it a moment later: until then the shard counts as held. So does a shard that was held at a server which is no longer known: its lease may have ended
 * while it and the pusher are well, and it enters again.
 *
 * Bound: one entry per shard that was ever pushed to another server, or given away there, since the start.
 */
import { isDeepStrictEqual } from 'node:util';
import { Listeners } from '../domain/listeners.js';
import type { Clock, Subscription } from '../domain/ports.js';
import type { PublishedState } from '../domain/published-state.js';
import type { PeerPusher, PeerState, Peers } from '../domain/store-port.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';

export type PushersElsewhereParts = Readonly<{
  peers: Pick<Peers, 'others' | 'follow'>;
  state: Pick<PublishedState, 'follow' | 'slicesOf'>;
  clock: Pick<Clock, 'now'>;
}>;

/** `pusher`: undefined since `sinceMs`. */
export type PusherElsewhere = Readonly<{ pusher: PeerPusher | undefined; sinceMs: number }>;

/** Longer than a server takes to tell who has come. */
const toldMsMax = 2_000;
/** Longer than a server takes to find that its lease has ended, and to tell of its pushers again. */
const enteredMsMax = 5_000;

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
      peers.follow(() => this.#look()),
      state.follow(({ shards }) => {
        if (peers.others.size === 0) return;
        for (const { shard, via, plain, removed } of shards)
          if (via === 'local' && !plain && !removed) this.#heldUntilMs.set(shard, clock.now() + toldMsMax);
      }),
    ];
    this.#look();
  }

  /** Undefined where none was ever there. */
  of(shard: ShardName): PusherElsewhere | undefined {
    return this.#found.get(shard);
  }

  isHeld(shard: ShardName, nowMs: number): boolean {
    return this.#found.get(shard)?.pusher?.isHeld === true || nowMs < (this.#heldUntilMs.get(shard) ?? 0);
  }

  /** Shards whose pushers are there. */
  *present(): Generator<ShardName> {
    for (const [shard, { pusher }] of this.#found) if (pusher !== undefined) yield shard;
  }

  /** Calls when one of them has come or gone, or reports something new: with the slices of those that do. */
  follow(listener: (slices: readonly Slice[]) => void): Subscription {
    return this.#listeners.subscribe(listener);
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.cancel();
  }

  #look(): void {
    const { peers, state, clock } = this.#parts;
    const nowMs = clock.now();
    const servers = new Map(peers.others);
    for (const [id, { pushers }] of this.#servers)
      if (!servers.has(id)) for (const [shard, { isHeld }] of pushers) if (isHeld) this.#heldUntilMs.set(shard, nowMs + enteredMsMax);
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
    this.#listeners.tell(reported);
  }
}
