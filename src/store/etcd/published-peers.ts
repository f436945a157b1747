/**
 * What is published of the servers of one etcd: their records, fences and heartbeats, and which of them leads. Each key lies in the lease of its server; one that lies
 * in none was copied here, and would never go.
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

  /** The id of the server that leads; undefined where none does. */
  get leader(): string | undefined {
    return this.#leader?.isLeased === true ? this.#leader.id : undefined;
  }

  /** The last change of the record that names it; 0: there is none. */
  get leaderRevision(): Revision {
    return this.#leader?.revision ?? 0;
  }

  /** By their ids. */
  get servers(): ReadonlyMap<string, PeerState> {
    return this.#servers;
  }

  /** The last one of each server, by its id. */
  get heartbeats(): ReadonlyMap<string, Revision> {
    return this.#heartbeats;
  }

  /** The last change of the fence of a server; undefined where it has none. */
  fenceOf(server: string): Revision | undefined {
    return this.#fences.get(server);
  }

  /** Whether a record of a server, or who leads, has changed since the last call. */
  takeChange(): boolean {
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    return isChanged;
  }

  /** `value`: undefined where the key is gone. */
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
