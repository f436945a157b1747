/**
 * Reports to the other servers of the same store which pushers are connected here, and which shards
 * plain writers write to here. Receives the other servers' plain writes.
 *
 * A pusher that connects or leaves is reported at once, other changes once a second, and writes to
 * a shard every `writesReportedMs` at most. A server that is alone reports nothing.
 */
import { isDeepStrictEqual } from 'node:util';
import { every } from '../../domain/base/promises.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { Peers, PeerState } from '../../domain/store-port.js';
import type { ShardName } from '../../domain/shard.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { PlainWrites } from '../writes/plain-writes.js';
import type { PushSessions } from './push-sessions.js';

export type PeerReportsParts = Readonly<{
  peers: Peers;
  sessions: Pick<PushSessions, 'pushersForPeers' | 'follow'>;
  known: Pick<PublishedState, 'slicesOf'>;
  plainWrites: Pick<PlainWrites, 'lastWritesHere' | 'recordWriteElsewhere'>;
  clock: Clock;
}>;

const reportIntervalMs = 1_000;
const writesReportedMs = 5_000;

export class PeerReports {
  readonly #parts: PeerReportsParts;
  readonly #subscriptions: readonly Subscription[];
  /**
   * For each shard, the highest number that other servers report. It changes after plain writes
   * there.
   */
  #receivedWrites = new Map<ShardName, number>();
  #reported: PeerState = { pushers: new Map(), lastWrites: new Map() };
  readonly #cancelReport: () => void;

  constructor(parts: PeerReportsParts) {
    this.#parts = parts;
    const { peers, sessions } = parts;
    this.#subscriptions = [
      peers.follow(() => {
        this.#receive();
        this.#report();
      }),
      sessions.follow((slices) => (slices.length === 0 ? this.#report() : undefined)),
    ];
    this.#cancelReport = every(parts.clock, reportIntervalMs, () => this.#report());
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.cancel();
    this.#cancelReport();
  }

  #report(): void {
    const { peers, sessions, known, plainWrites, clock } = this.#parts;
    if (peers.isAlone) return;
    const state = {
      pushers: sessions.pushersForPeers(clock.now(), (shard) => [...known.slicesOf(shard)].map(({ slice }) => slice.resource)),
      lastWrites: new Map([...plainWrites.lastWritesHere()].map(([shard, ms]) => [shard, this.#reportable(shard, ms)])),
    };
    if (isDeepStrictEqual(state, this.#reported)) return;
    this.#reported = state;
    peers.report(state);
  }

  /**
   * Returns the shard's reported number, or `writtenMs` if that is at least `writesReportedMs`
   * later.
   */
  #reportable(shard: ShardName, writtenMs: number): number {
    const reported = this.#reported.lastWrites.get(shard) ?? 0;
    return writtenMs - reported >= writesReportedMs ? writtenMs : reported;
  }

  #receive(): void {
    const now = new Map<ShardName, number>();
    for (const { lastWrites } of this.#parts.peers.others.values())
      for (const [shard, number] of lastWrites) now.set(shard, Math.max(number, now.get(shard) ?? 0));
    for (const [shard, number] of now) if (this.#receivedWrites.get(shard) !== number) this.#parts.plainWrites.recordWriteElsewhere(shard);
    this.#receivedWrites = now;
  }
}
