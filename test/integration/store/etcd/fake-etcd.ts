/**
 * An etcd in memory, as far as several servers of one store use it: keys with revisions, and
 * leases. A server sees changes when it calls `reach`.
 */
import { deferred } from '../../../../src/domain/base/promises.js';
import type { EtcdPeersParts } from '../../../../src/store/etcd/peers.js';
import { EtcdError } from '../../../../src/store/etcd/etcd-error.js';
import { PublishedState } from '../../../../src/store/etcd/published-state.js';
import { RecentBodies } from '../../../../src/store/etcd/recent-bodies.js';
import type { KeyValue, RangeResponse, TxnRequest, WatchEvent } from '../../../../src/store/etcd/rpc.js';
import { silent } from '../../../support/test-store.js';

type Kv = Readonly<{ value: Uint8Array; revision: number; lease: number }>;

type State = Readonly<{ revision: number; kvs: ReadonlyMap<string, Kv>; leases: ReadonlySet<number> }>;

export class FakeEtcd {
  #state: State = { revision: 1, kvs: new Map(), leases: new Set() };
  readonly #history: WatchEvent[] = [];
  /** Refuses writes that need room. */
  isFull = false;
  /** Refuses every request. */
  isAway = false;
  /** Refuses to keep leases alive. */
  keepsNoLease = false;
  /** Delays the next answer to a read until this promise resolves. */
  heldRead: Promise<void> | undefined;

  readonly client: EtcdPeersParts['client'] = {
    grantLease: async ({ id }) => {
      this.#assertTakes();
      this.#set({ leases: new Set([...this.#state.leases, id]) });
    },
    keepLease: async (id) => {
      this.#assertThere();
      if (this.keepsNoLease) throw new EtcdError('unknown', 'no answer');
      return this.#state.leases.has(id) ? 10 : 0;
    },
    endLease: async (id) => {
      this.#assertThere();
      this.expire(id);
    },
    range: async ({ key }) => {
      this.#assertThere();
      const found = this.#range(key);
      const held = this.heldRead;
      this.heldRead = undefined;
      await held;
      return found;
    },
    txn: async (request) => this.#txn(request),
  };

  get leases(): readonly number[] {
    return [...this.#state.leases];
  }

  /** The published state of one server, and a function that applies all changes to it. */
  published(): Readonly<{ published: PublishedState; reach: () => Promise<void> }> {
    const published = new PublishedState({ prefix: '/cache', bodies: new RecentBodies(1024), log: silent, keptNames: new Map() });
    let shown = 0;
    const reach = async (): Promise<void> => {
      const events = this.#history.slice(shown);
      shown = this.#history.length;
      published.apply({ revision: this.#state.revision, events }, 0);
    };
    return { published, reach };
  }

  /** Call the returned function to let the read be answered. */
  holdNextRead(): () => void {
    const held = deferred<void>();
    this.heldRead = held.promise;
    return () => held.resolve();
  }

  expire(lease: number): void {
    const gone = [...this.#state.kvs].filter(([, kv]) => kv.lease === lease).map(([key]) => key);
    const leases = new Set(this.#state.leases);
    leases.delete(lease);
    this.#set({ leases });
    if (gone.length > 0) this.#commit((kvs, revision) => gone.map((key) => this.#delete(kvs, key, revision)));
  }

  snapshot(): State {
    return this.#state;
  }

  /** Like a restore with `--bump-revision`: watches receive no changes of it. */
  restore({ kvs, leases }: State): void {
    this.#state = { kvs, leases, revision: this.#state.revision + 1_000_000 };
  }

  #txn({ compare, success, failure }: TxnRequest): ReturnType<EtcdPeersParts['client']['txn']> {
    this.#assertThere();
    const succeeded = compare.every(({ key, revision }) => (this.#state.kvs.get(text(key))?.revision ?? 0) === revision);
    const operations = succeeded ? success : failure;
    const puts = operations.flatMap((each) => (each.kind === 'put' ? [each] : []));
    if (puts.length > 0) this.#assertTakes();
    const ranges = operations.flatMap((each) => (each.kind === 'range' ? [this.#range(each.request.key)] : []));
    if (puts.length > 0)
      this.#commit((kvs, revision) =>
        puts.map(({ key, value, lease = 0 }) => {
          const kv = { value, revision, lease };
          kvs.set(text(key), kv);
          return { kind: 'put', kv: keyValue(text(key), kv), previous: undefined };
        }),
      );
    return Promise.resolve({ succeeded, revision: this.#state.revision, ranges });
  }

  #commit(change: (kvs: Map<string, Kv>, revision: number) => readonly WatchEvent[]): void {
    const kvs = new Map(this.#state.kvs);
    const revision = this.#state.revision + 1;
    this.#history.push(...change(kvs, revision));
    this.#set({ kvs, revision });
  }

  #delete(kvs: Map<string, Kv>, key: string, revision: number): WatchEvent {
    kvs.delete(key);
    return { kind: 'delete', kv: keyValue(key, { value: new Uint8Array(), revision, lease: 0 }), previous: undefined };
  }

  #range(key: Uint8Array): RangeResponse {
    const kv = this.#state.kvs.get(text(key));
    const kvs = kv === undefined ? [] : [keyValue(text(key), kv)];
    return { revision: this.#state.revision, kvs, more: false, count: kvs.length };
  }

  #assertTakes(): void {
    this.#assertThere();
    if (this.isFull) throw new EtcdError('full', 'database space exceeded');
  }

  #assertThere(): void {
    if (this.isAway) throw new EtcdError('unknown', 'no answer');
  }

  #set(state: Partial<State>): void {
    this.#state = { ...this.#state, ...state };
  }
}

function keyValue(key: string, { value, revision, lease }: Kv): KeyValue {
  return { key: Buffer.from(key), value, revision, lease };
}

function text(key: Uint8Array): string {
  return Buffer.from(key).toString();
}
