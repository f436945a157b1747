/**
 * The servers of one etcd. Each has a record of its own that goes when the server does, because it lies in a lease; one of them is the leader, and does what is
 * to be done once.
 *
 *   joins: a lease, a record ──▶ keeps the lease, tells what is new ──┬─▶ leaves: ends the lease, so that another leads at once
 *             ▲                                                       └─▶ the lease is gone (it was frozen, or cut off)
 *             └───────────────────────────────────────────────────────────┘
 *
 * Beside its record each has a fence. Every write of a server holds only while its fence is as it was, so once the fence is renewed, nothing that it sent before can
 * arrive any more.
 *
 * V1 Two servers never both take themselves for the leader, as far as their clocks run equally fast: a leader stops a lease's time after it asked to keep it,
 *    and etcd gives the lead away no earlier.
 */
import type { Log } from '../../diagnostics/log.js';
import { pause } from '../../domain/pause.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import type { Peers, PeerState } from '../../domain/store-port.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import type { PublishedState } from './published-state.js';
import { formatRecordKey, formatServerRecord, type RecordKey } from './records.js';
import type { Compare, Operation, TxnRequest } from './rpc.js';

export type EtcdPeersParts = Readonly<{
  client: EtcdClient;
  clock: Clock;
  log: Log;
  random: () => number;
  published: PublishedState;
  prefix: string;
  /** Resolves once everything up to the revision is published here. */
  reach: (revision: Revision) => Promise<void>;
  /** etcd has lost what is published here. */
  contradicted: () => void;
}>;

export const leaseSeconds = 10;
const leaseMs = leaseSeconds * 1_000;
/** Three times within its time. */
const keepIntervalMs = leaseMs / 3;
const retryMs = 200;
const renewIntervalMs = 30_000;
/** A new leader of etcd is there sooner, and does not know of what the former was asked. */
const answerMsMax = 2_000;
const unsaid = new Uint8Array();
const nothingMore = { compare: [], success: [] };
/** What has changed is told together. */
const tellDelayMs = 200;
const idMax = 2 ** 47;

export class EtcdPeers implements Peers {
  readonly #parts: EtcdPeersParts;
  readonly id: string;
  readonly #listeners = new Set<() => void>();
  readonly #closing = new AbortController();
  #lease = 0;
  #leaseUntilMs = 0;
  #state: PeerState = { pushers: new Map(), heard: new Map() };
  #cancelTell: (() => void) | undefined;
  #isTaking = false;
  #entering: Promise<boolean> | undefined;
  #renewedMs = 0;
  /** What was to be told last could not be. */
  #isUntold = false;
  #ledSinceMs: number | undefined;

  constructor(parts: EtcdPeersParts) {
    this.#parts = parts;
    this.id = Math.floor(parts.random() * idMax)
      .toString(16)
      .padStart(12, '0');
  }

  /** Keeps what it has entered, or enters now. Throws EtcdError, unless it is that etcd is full: then it enters once that is not, and reads until then. */
  async join(): Promise<void> {
    try {
      if (this.#lease === 0) await this.#enterAgain();
    } catch (error) {
      if (!(error instanceof EtcdError) || error.kind !== 'full') throw error;
      this.#parts.log.warn('peers.not-told', { message: error.message });
    }
    this.look();
    void this.#keep();
  }

  /** etcd does not hold what is published. */
  contradicted(): void {
    this.#parts.contradicted();
  }

  /** That of this server, as it is published; undefined where there is none now. */
  get fence(): Compare | undefined {
    const revision = this.#parts.published.fenceOf(this.id);
    return revision === undefined ? undefined : { key: this.#keyOf({ kind: 'fence', id: this.id }), revision };
  }

  /** Nothing that was sent before arrives any more once this has resolved; what has arrived by then is published. Throws EtcdError. */
  async renewFence(): Promise<void> {
    if (this.#lease === 0 || this.#parts.clock.now() >= this.#leaseUntilMs) return this.#enterAgain();
    const renewedMs = this.#parts.clock.now();
    const { revision } = await this.#parts.client.txn({ compare: [], success: [this.#putFence(this.#lease)], failure: [] }, answerMsMax);
    await this.#parts.reach(revision);
    this.#renewedMs = renewedMs;
  }

  get leadsSinceMs(): number | undefined {
    return this.#isLeader ? this.#ledSinceMs : undefined;
  }

  get #isLeader(): boolean {
    return this.#parts.published.leader === this.id && this.#parts.clock.now() < this.#leaseUntilMs;
  }

  get others(): ReadonlyMap<string, PeerState> {
    const others = new Map(this.#parts.published.servers);
    others.delete(this.id);
    return others;
  }

  tell(state: PeerState): void {
    this.#state = state;
    this.#cancelTell ??= this.#parts.clock.after(tellDelayMs, () => {
      this.#cancelTell = undefined;
      if (!this.#closing.signal.aborted) void this.#say();
    });
  }

  /** Tells the same again. Resolves with whether etcd has taken it. */
  async retell(): Promise<boolean> {
    await this.#say();
    return !this.#isUntold;
  }

  /**
   * Whether etcd has the fence that is published, or a later one; if not, it was restored to what it held before that was renewed, unless the fence has gone with its
   * lease. Throws EtcdError.
   */
  async isKept(): Promise<boolean> {
    const { client, published, clock } = this.#parts;
    const shown = published.fenceOf(this.id) ?? 0;
    const { kvs } = await client.range({ key: this.#keyOf({ kind: 'fence', id: this.id }) });
    const there = kvs[0]?.revision ?? 0;
    return there >= shown || (there === 0 && clock.now() >= this.#leaseUntilMs);
  }

  follow(listener: () => void): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  /** What is published of servers may have changed. */
  look(): void {
    const { published, log, clock } = this.#parts;
    const leader = published.leader === undefined ? undefined : published.servers.get(published.leader);
    if (leader === undefined && this.#lease !== 0 && !this.#isTaking) void this.#lead();
    const isLeader = this.#isLeader;
    if (isLeader !== (this.#ledSinceMs !== undefined)) {
      this.#ledSinceMs = isLeader ? clock.now() : undefined;
      log.info(isLeader ? 'peers.leads' : 'peers.follows', { server: this.id });
    }
    for (const listener of this.#listeners) listener();
  }

  /** Resolves once its lease has ended, or that could not be done. */
  async leave(): Promise<void> {
    this.#closing.abort();
    this.#cancelTell?.();
    if (this.#lease !== 0) await this.#attempt(() => this.#parts.client.endLease(this.#lease));
  }

  /** A lease, and in it what is known of this server; with what is given, all or nothing. Resolves with whether that held. Throws EtcdError. */
  async enter({ compare, success }: Pick<TxnRequest, 'compare' | 'success'> = nothingMore): Promise<boolean> {
    const { client, clock, random, reach } = this.#parts;
    const askedMs = clock.now();
    const lease = 1 + Math.floor(random() * idMax);
    await client.grantLease({ id: lease, ttlSeconds: leaseSeconds });
    const own = [this.#putServer(lease), this.#putFence(lease)];
    const { succeeded, revision } = await client.txn({ compare, success: [...success, ...own], failure: [] });
    if (succeeded) {
      this.#lease = lease;
      this.#leaseUntilMs = askedMs + leaseMs;
    }
    await reach(revision);
    return succeeded;
  }

  /** Those who find at the same time that the lease is gone share a new one. */
  async #enterAgain(): Promise<void> {
    this.#entering ??= this.enter().finally(() => (this.#entering = undefined));
    await this.#entering;
  }

  async #reenter(): Promise<void> {
    const { client, reach, contradicted } = this.#parts;
    await reach(await client.revision());
    if (!(await this.isKept())) contradicted();
    await this.#enterAgain();
  }

  async #keep(): Promise<void> {
    const { client, clock } = this.#parts;
    for (let isKept = true; !this.#closing.signal.aborted;) {
      await pause(clock, isKept ? keepIntervalMs : retryMs, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      isKept = await this.#attempt(async () => {
        const askedMs = clock.now();
        if ((await client.keepLease(this.#lease, answerMsMax)) > 0) this.#leaseUntilMs = askedMs + leaseMs;
        else await this.#reenter();
        if (clock.now() - this.#renewedMs >= renewIntervalMs) await this.renewFence();
      });
      if (this.#isUntold) await this.#say();
      this.look();
    }
  }

  async #lead(): Promise<void> {
    this.#isTaking = true;
    const key = this.#keyOf({ kind: 'leader' });
    const value = Buffer.from(this.id);
    // One that names a server which is not there was copied here.
    const compare = [{ key, revision: this.#parts.published.leaderRevision }];
    await this.#attempt(async () => {
      await this.#parts.client.txn({ compare, success: [{ kind: 'put', key, value, lease: this.#lease }], failure: [] });
    });
    this.#isTaking = false;
  }

  async #say(): Promise<void> {
    this.#isUntold = !(await this.#attempt(async () => {
      await this.#parts.client.txn({ compare: [], success: [this.#putServer(this.#lease)], failure: [] });
    }));
  }

  #putServer(lease: number): Operation {
    const value = formatServerRecord({ ...this.#state, lease });
    return { kind: 'put', key: this.#keyOf({ kind: 'server', id: this.id }), value, lease };
  }

  #putFence(lease: number): Operation {
    return { kind: 'put', key: this.#keyOf({ kind: 'fence', id: this.id }), value: unsaid, lease };
  }

  /** Resolves with whether it could be done. */
  async #attempt(run: () => Promise<void>): Promise<boolean> {
    try {
      await run();
      return true;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      this.#parts.log.warn('peers.not-told', { message: error.message });
      return false;
    }
  }

  #keyOf(key: RecordKey): Uint8Array {
    return Buffer.from(formatRecordKey(this.#parts.prefix, key));
  }
}
