/** The other servers of a store, played by the test: `hear` reports their state. */
import type { Subscription } from '../../../src/domain/ports.js';
import type { Peers, PeerPusher, PeerState } from '../../../src/domain/store-port.js';
import type { ShardName } from '../../../src/domain/shard.js';

export class FakePeers implements Peers {
  leadsSinceMs: number | undefined;
  readonly others = new Map<string, PeerState>();
  /** A test sets it to false for another server that is known but has reported nothing. */
  isAlone = true;
  readonly told: PeerState[] = [];
  readonly #listeners = new Set<() => void>();

  report(state: PeerState): void {
    this.told.push(state);
  }

  follow(listener: () => void): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  /** Reports the state of another server; undefined: that server is gone. */
  hear(id: string, state: Partial<PeerState> | undefined): void {
    if (state === undefined) this.others.delete(id);
    else this.others.set(id, { pushers: new Map(), lastWrites: new Map(), ...state });
    this.isAlone = this.others.size === 0;
    for (const listener of this.#listeners) listener();
  }
}

export function pushersOf(shard: ShardName, pusher: Partial<PeerPusher> = {}): ReadonlyMap<ShardName, PeerPusher> {
  return new Map([[shard, { peer: 'elsewhere', isHeld: true, connected: true, lagMs: 0, whole: true, ...pusher }]]);
}
