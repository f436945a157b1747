/**
 * Reports to the other servers of the same store which pushers are connected here, and which shards
 * plain writers write to here. Receives the same about plain writers.
 *
 * A pusher that comes or goes is reported at once, other changes once a second, and writes to a
 * shard every `heardToldMs` at most. A server that is alone reports nothing.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock, Subscription } from '../domain/ports.js';
import type { Peers, PeerState } from '../domain/store-port.js';
import type { ShardName } from '../domain/shard.js';
import type { PublishedState } from '../domain/published-state.js';
import type { PlainWrites } from './plain-writes.js';
import type { PushSessions } from './push-sessions.js';

export type ToldPeersParts = Readonly<{
  peers: Peers;
  sessions: Pick<PushSessions, 'here' | 'follow'>;
  known: Pick<PublishedState, 'slicesOf'>;
  plainWrites: Pick<PlainWrites, 'heardHere' | 'hearElsewhere'>;
  clock: Clock;
}>;

const lookIntervalMs = 1_000;
const heardToldMs = 5_000;

export class ToldPeers {
  readonly #parts: ToldPeersParts;
  readonly #subscriptions: readonly Subscription[];
  /**
   * What the other servers last reported of plain writers: a number for each shard, which changes
   * when somebody writes to it.
   */
  #heard = new Map<ShardName, number>();
  #told: PeerState = { pushers: new Map(), heard: new Map() };
  #cancelLook = (): void => {};

  constructor(parts: ToldPeersParts) {
    this.#parts = parts;
    const { peers, sessions } = parts;
    this.#subscriptions = [
      peers.follow(() => {
        this.#hear();
        this.#tell();
      }),
      sessions.follow((slices) => (slices.length === 0 ? this.#tell() : undefined)),
    ];
    this.#tellLater();
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.cancel();
    this.#cancelLook();
  }

  #tellLater(): void {
    this.#cancelLook = this.#parts.clock.after(lookIntervalMs, () => {
      this.#tellLater();
      this.#tell();
    });
  }

  #tell(): void {
    const { peers, sessions, known, plainWrites, clock } = this.#parts;
    if (peers.isAlone) return;
    const heard = new Map(this.#told.heard);
    for (const [shard, heardMs] of plainWrites.heardHere) if (heardMs - (heard.get(shard) ?? 0) >= heardToldMs) heard.set(shard, heardMs);
    const state = { pushers: sessions.here(clock.now(), (shard) => [...known.slicesOf(shard)].map(({ slice }) => slice.resource)), heard };
    if (isDeepStrictEqual(state, this.#told)) return;
    this.#told = state;
    peers.tell(state);
  }

  #hear(): void {
    const now = new Map<ShardName, number>();
    for (const { heard } of this.#parts.peers.others.values())
      for (const [shard, number] of heard) now.set(shard, Math.max(number, now.get(shard) ?? 0));
    for (const [shard, number] of now) if (this.#heard.get(shard) !== number) this.#parts.plainWrites.hearElsewhere(shard);
    this.#heard = now;
  }
}
