/**
 * The servers of one etcd. Each has a record of its own that goes when the server does, because it lies in a lease; one of them is the leader, and does what is
 * to be done once.
 *
 *   joins: a lease, a record ──▶ keeps the lease, tells what is new ──┬─▶ leaves: ends the lease, so that another leads at once
 *             ▲                                                       └─▶ the lease is gone (it was frozen, or cut off)
 *             └───────────────────────────────────────────────────────────┘
 *
 * V1 Two servers never both take themselves for the leader, as far as their clocks run equally fast: a leader stops a lease's time after it asked to keep it,
 *    and etcd gives the lead away no earlier.
 */
import type { Log } from '../../diagnostics/log.js';
import { pause } from '../../domain/pause.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { Peers, PeerState } from '../../domain/store-port.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import type { PublishedState } from './published-state.js';
import { formatRecordKey, formatServerRecord } from './records.js';
import type { TxnRequest } from './rpc.js';

export type EtcdPeersParts = Readonly<{
  client: EtcdClient;
  clock: Clock;
  log: Log;
  random: () => number;
  published: PublishedState;
  prefix: string;
}>;

export const leaseSeconds = 10;
const leaseMs = leaseSeconds * 1_000;
/** Three times within its time. */
const keepIntervalMs = leaseMs / 3;
/** What has changed is told together. */
const tellDelayMs = 200;
const idMax = 2 ** 47;

export class EtcdPeers implements Peers {
  readonly #parts: EtcdPeersParts;
  readonly #id: string;
  readonly #listeners = new Set<() => void>();
  readonly #closing = new AbortController();
  #lease = 0;
  #leaseUntilMs = 0;
  #state: PeerState = { pushers: new Map(), heard: new Map() };
  #cancelTell: (() => void) | undefined;
  #isTaking = false;
  #ledSinceMs: number | undefined;

  constructor(parts: EtcdPeersParts) {
    this.#parts = parts;
    this.#id = Math.floor(parts.random() * idMax)
      .toString(16)
      .padStart(12, '0');
  }

  /** Throws EtcdError. */
  async join(): Promise<void> {
    await this.#enter();
    this.look();
    void this.#keep();
  }

  get leadsSinceMs(): number | undefined {
    return this.#isLeader ? this.#ledSinceMs : undefined;
  }

  get #isLeader(): boolean {
    return this.#parts.published.leader === this.#id && this.#parts.clock.now() < this.#leaseUntilMs;
  }

  get others(): ReadonlyMap<string, PeerState> {
    const others = new Map(this.#parts.published.servers);
    others.delete(this.#id);
    return others;
  }

  tell(state: PeerState): void {
    this.#state = state;
    this.#cancelTell ??= this.#parts.clock.after(tellDelayMs, () => {
      this.#cancelTell = undefined;
      if (!this.#closing.signal.aborted) void this.#attempt(() => this.#put());
    });
  }

  /** Tells the same again. Resolves with whether etcd has taken it. */
  retell(): Promise<boolean> {
    return this.#attempt(() => this.#put());
  }

  follow(listener: () => void): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  /** What is published of servers may have changed. */
  look(): void {
    const { published, log, clock } = this.#parts;
    if (published.leader === undefined && this.#lease !== 0 && !this.#isTaking) void this.#lead();
    const isLeader = this.#isLeader;
    if (isLeader !== (this.#ledSinceMs !== undefined)) {
      this.#ledSinceMs = isLeader ? clock.now() : undefined;
      log.info(isLeader ? 'peers.leads' : 'peers.follows', { server: this.#id });
    }
    for (const listener of this.#listeners) listener();
  }

  /** Resolves once its lease has ended, or that could not be done. */
  async leave(): Promise<void> {
    this.#closing.abort();
    this.#cancelTell?.();
    if (this.#lease !== 0) await this.#attempt(() => this.#parts.client.endLease(this.#lease));
  }

  async #enter(): Promise<void> {
    const { client, clock, random } = this.#parts;
    const askedMs = clock.now();
    const lease = 1 + Math.floor(random() * idMax);
    await client.grantLease({ id: lease, ttlSeconds: leaseSeconds });
    this.#lease = lease;
    this.#leaseUntilMs = askedMs + leaseMs;
    await this.#put();
  }

  async #keep(): Promise<void> {
    const { client, clock } = this.#parts;
    while (!this.#closing.signal.aborted) {
      await pause(clock, keepIntervalMs, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      await this.#attempt(async () => {
        const askedMs = clock.now();
        if ((await client.keepLease(this.#lease)) > 0) this.#leaseUntilMs = askedMs + leaseMs;
        else await this.#enter();
      });
      this.look();
    }
  }

  async #lead(): Promise<void> {
    this.#isTaking = true;
    const key = this.#keyOf('leader');
    const value = Buffer.from(this.#id);
    await this.#attempt(async () => {
      const txn: TxnRequest = { compare: [{ key, revision: 0 }], success: [{ kind: 'put', key, value, lease: this.#lease }], failure: [] };
      await this.#parts.client.txn(txn);
    });
    this.#isTaking = false;
  }

  async #put(): Promise<void> {
    const key = Buffer.from(formatRecordKey(this.#parts.prefix, { kind: 'server', id: this.#id }));
    const value = formatServerRecord({ ...this.#state, lease: this.#lease });
    await this.#parts.client.txn({ compare: [], success: [{ kind: 'put', key, value, lease: this.#lease }], failure: [] });
  }

  /** Resolves with whether it could be done. */
  async #attempt(run: () => Promise<void>): Promise<boolean> {
    try {
      await run();
      return true;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      this.#parts.client.moveOn();
      this.#parts.log.warn('peers.not-told', { message: error.message });
      return false;
    }
  }

  #keyOf(kind: 'leader'): Uint8Array {
    return Buffer.from(formatRecordKey(this.#parts.prefix, { kind }));
  }
}
