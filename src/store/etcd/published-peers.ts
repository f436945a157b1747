/**
 * The published records, fences and heartbeats of the servers of one etcd, and which server leads.
 * Each key is attached to the lease of its server. A key without a lease was copied into this etcd
 * and would never expire, so it does not count.
 */
import type { Revision } from '../../domain/revision.js';
import type { PeerState } from '../../domain/store-port.js';
import { keyText } from './object-keys.js';
import { parseServerRecord, type RecordKey } from './records.js';
import type { KeyValue } from './rpc.js';

type PeerKey = Extract<RecordKey, { kind: 'server' | 'fence' | 'heartbeat' | 'leader' }>;

export class PublishedPeers {
  readonly #servers = new Map<string, PeerState>();
  readonly #fences = new Map<string, Revision>();
  readonly #heartbeats = new Map<string, Revision>();
  #leader: Readonly<{ id: string; revision: Revision; isLeased: boolean }> | undefined;
  #isChanged = false;

  /** Undefined if no server leads. */
  get leader(): string | undefined {
    return this.#leader?.isLeased === true ? this.#leader.id : undefined;
  }

  /** 0 if there is no leader record. */
  get leaderRevision(): Revision {
    return this.#leader?.revision ?? 0;
  }

  /** Keyed by the id of the server. */
  get servers(): ReadonlyMap<string, PeerState> {
    return this.#servers;
  }

  /** The revision of each server's last heartbeat, keyed by server id. */
  get heartbeats(): ReadonlyMap<string, Revision> {
    return this.#heartbeats;
  }

  fenceOf(server: string): Revision | undefined {
    return this.#fences.get(server);
  }

  /** Whether a server's record or the leader has changed since the last call. */
  takeChange(): boolean {
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    return isChanged;
  }

  /** `value`: undefined if the key was deleted. */
  recorded(key: PeerKey, value: Uint8Array | undefined, { revision, lease }: KeyValue): void {
    const leased = lease === 0 ? undefined : value;
    switch (key.kind) {
      case 'server':
        this.#isChanged = true;
        return put(this.#servers, key.id, leased && parseServerRecord(leased));
      case 'fence':
        return put(this.#fences, key.id, leased && revision);
      case 'heartbeat':
        return put(this.#heartbeats, key.id, leased && revision);
      case 'leader':
        this.#isChanged = true;
        this.#leader = value && { id: keyText(value), revision, isLeased: lease !== 0 };
    }
  }
}

function put<Value>(map: Map<string, Value>, id: string, value: Value | undefined): void {
  if (value === undefined) map.delete(id);
  else map.set(id, value);
}
