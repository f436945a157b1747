/**
 * What a simulated cache knows of the parties connected to it: stands in for PushSessions. It asks a party when the answer is
 * needed, so that no answer is old.
 */
import type { Clock } from '../../src/domain/ports.js';
import { formatResource } from '../../src/domain/resource.js';
import type { ShardName } from '../../src/domain/shard.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import type { SliceFreshness } from '../../src/frames/frame.js';
import type { Presence, PushSessions } from '../../src/intake/push-sessions.js';
import type { SimParty } from './sim-party.js';

export class SimSessions implements Pick<PushSessions, 'presence' | 'freshness' | 'present' | 'keeps' | 'leavesOut' | 'follow'> {
  readonly #parties: ReadonlySet<SimParty>;
  readonly #startedMs: number;

  constructor(parties: ReadonlySet<SimParty>, clock: Pick<Clock, 'now'>) {
    this.#parties = parties;
    this.#startedMs = clock.now();
  }

  get present(): ReadonlyMap<ShardName, undefined> {
    return new Map([...this.#parties].flatMap(({ shard, isConnected }) => (isConnected ? [[shard, undefined]] : [])));
  }

  leavesOut({ shard, resource }: Slice): boolean {
    const party = this.#connected(shard);
    return party !== undefined && !party.resources.some((each) => formatResource(each) === formatResource(resource));
  }

  keeps(shard: ShardName): boolean {
    return this.#connected(shard) !== undefined;
  }

  presence(shard: ShardName): Presence {
    const party = this.#connected(shard);
    const reported = (party?.resources ?? []).map((resource) => this.#report({ shard, resource }, party));
    const peer = party === undefined ? undefined : `pusher of ${shard}`;
    return { peer, sinceMs: this.#startedMs, reported: new Map(reported.map((each) => [formatSlice(each.slice), each])) };
  }

  freshness(slice: Slice): Omit<SliceFreshness, 'slice' | 'synced'> {
    const { connected, lagMs, whole } = this.#report(slice, this.#connected(slice.shard));
    return { connected, lagMs, whole };
  }

  /** Whoever wants to know who is connected polls every second. */
  follow(): Readonly<{ cancel: () => void }> {
    return { cancel: () => {} };
  }

  #connected(shard: ShardName): SimParty | undefined {
    for (const party of this.#parties) if (party.shard === shard && party.isConnected) return party;
    return undefined;
  }

  #report(slice: Slice, party: SimParty | undefined): SliceFreshness {
    const lagMs = party?.lagMs(slice.resource);
    return { slice, connected: lagMs !== undefined, synced: lagMs !== undefined, lagMs: lagMs ?? 0, whole: lagMs !== undefined };
  }
}
