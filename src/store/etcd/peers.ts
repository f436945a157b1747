/**
 * The servers that share one etcd. Each attaches a record to its lease, so etcd deletes the record
 * once the server is gone. One server leads, and does the work that must be done only once.
 *
 *   joins: a lease, a record ──▶ renews the lease, ──┬─▶ leaves: ends the lease; another server
 *             ▲                  writes heartbeats   │   leads at once
 *             │                                      └─▶ the lease is gone: the server was frozen,
 *             └──────────────────────────────────────────  or cut off
 *
 * Each server has a fence: a key that all its writes compare. Once the server has renewed the
 * fence, etcd can apply no write that the server sent before.
 *
 * Each server keeps writing its heartbeat. Only a changing heartbeat proves that a server runs,
 * because a new leader of etcd restarts the time of every lease. `others` omits a server whose
 * heartbeat stays the same for four heartbeats of this server. A leader that is silent three times
 * as long is replaced.
 *
 * No server can write its heartbeat to a restored etcd, so each notices the restore. The write
 * compares the previous heartbeat, which a restored etcd may lack. If etcd has the previous
 * heartbeat, the server still waits until etcd's revision is published here, which never happens
 * after a restore.
 *
 * V1 Two servers never both act as the leader, if their clocks run equally fast. A leader stops one
 *    lease time after it requested a renewal of its lease, and etcd ends the lease no earlier. A
 *    leader also stops 30 s after it last wrote its heartbeat; others take the lead 40 s after that
 *    heartbeat was published.
 */
import type { Log } from '../../diagnostics/log.js';
import { pause, untilAborted } from '../../domain/base/promises.js';
import { Listeners } from '../../domain/base/listeners.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import type { Peers, PeerState } from '../../domain/store-port.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import type { PublishedPeers } from './published-peers.js';
import { formatRecordKey, formatServerRecord, type RecordKey } from './records.js';
import type { Compare, Operation, TxnRequest } from './rpc.js';

export type EtcdPeersParts = Readonly<{
  client: Pick<EtcdClient, 'txn' | 'range' | 'grantLease' | 'keepLease' | 'endLease'>;
  clock: Clock;
  log: Log;
  random: () => number;
  published: PublishedPeers;
  prefix: string;
  /** Resolves once everything up to the revision is published here. */
  reach: (revision: Revision) => Promise<void>;
  /** Reports that etcd lacks something that is published here. */
  contradicted: () => void;
}>;

const leaseSeconds = 10;
export const leaseMs = leaseSeconds * 1_000;
const keepIntervalMs = leaseMs / 3;
const retryMs = 200;
/**
 * etcd elects a new leader in less time, and then never answers requests that the former leader
 * received.
 */
const answerMsMax = 2_000;
/**
 * Another server is silent if its heartbeat stays the same for this many heartbeats of this server,
 * which are `keepIntervalMs` apart.
 */
const silentAfter = 4;
/**
 * A leader is replaced if its heartbeat stays the same for this many. A server that is far behind
 * etcd writes no heartbeat, but may lead.
 */
const leaderSilentAfter = 12;
const leadsSilentlyMsMax = 30_000;
const emptyValue = new Uint8Array();
const nothingMore = { compare: [], success: [] };
/** Changes within this time are written to etcd together. */
const reportDelayMs = 200;
const idMax = 2 ** 47;

export class EtcdPeers implements Peers {
  readonly #parts: EtcdPeersParts;
  readonly id: string;
  readonly #listeners = new Listeners<void>();
  readonly #closing = new AbortController();
  #lease = 0;
  #leaseUntilMs = 0;
  #state: PeerState = { pushers: new Map(), lastWrites: new Map() };
  #cancelReport: (() => void) | undefined;
  #isTaking = false;
  #entering: Promise<void> | undefined;
  /** The revision of the last heartbeat that etcd confirmed. */
  #heartbeat: Revision = 0;
  /**
   * The revision that etcd last reported. It must be published here before the next heartbeat. A
   * server that stays some seconds behind requests it only once for each heartbeat.
   */
  #revisionToReach: Readonly<{ revision: Revision; askedMs: number }> | undefined;
  #leadsUntilMs = 0;
  /** The last heartbeat of each server, and how many heartbeats this server has written since. */
  readonly #silence = new Map<string, Readonly<{ heartbeat: Revision; raised: number }>>();
  /** Why the last request to etcd failed; undefined if it succeeded. */
  #failure: EtcdError | undefined;
  /** Whether the last attempt to write this server's state failed. */
  #isReportUnwritten = false;
  #ledSinceMs: number | undefined;

  constructor(parts: EtcdPeersParts) {
    this.#parts = parts;
    this.id = Math.floor(parts.random() * idMax)
      .toString(16)
      .padStart(12, '0');
  }

  /** Gets a lease if this server has none (`enter`), then keeps renewing it. Throws EtcdError. */
  async join(): Promise<void> {
    if (this.#lease === 0) await this.#enterAgain();
    this.checkLeader();
    void this.#keep();
  }

  contradicted(): void {
    this.#parts.contradicted();
  }

  /** This server's fence as published; undefined if there is none. */
  get fence(): Compare | undefined {
    const revision = this.#parts.published.fenceOf(this.id);
    return revision === undefined ? undefined : { key: this.#keyOf({ kind: 'fence', id: this.id }), revision };
  }

  /**
   * Once this resolves, etcd can apply no write that this server sent before, and the writes that
   * it has applied are published here. Throws EtcdError.
   */
  async renewFence(): Promise<void> {
    if (this.#lease === 0 || this.#parts.clock.now() >= this.#leaseUntilMs) return this.#enterAgain();
    const { revision } = await this.#parts.client.txn({ compare: [], success: [this.#put('fence')], failure: [] }, answerMsMax);
    await this.#parts.reach(revision);
  }

  get leadsSinceMs(): number | undefined {
    return this.#isLeader ? this.#ledSinceMs : undefined;
  }

  get #isLeader(): boolean {
    return this.#parts.published.leader === this.id && this.#parts.clock.now() < Math.min(this.#leaseUntilMs, this.#leadsUntilMs);
  }

  get others(): ReadonlyMap<string, PeerState> {
    const others = new Map(this.#parts.published.servers);
    others.delete(this.id);
    for (const id of others.keys()) if (this.#isSilent(id, silentAfter)) others.delete(id);
    return others;
  }

  get isAlone(): boolean {
    const { servers } = this.#parts.published;
    return servers.size === (servers.has(this.id) ? 1 : 0);
  }

  report(state: PeerState): void {
    this.#state = state;
    this.#cancelReport ??= this.#parts.clock.after(reportDelayMs, () => {
      this.#cancelReport = undefined;
      if (!this.#closing.signal.aborted) void this.#writeReport();
    });
  }

  /** Writes the last state again. Resolves with whether etcd accepted it. */
  async rewriteReport(): Promise<boolean> {
    await this.#writeReport();
    return !this.#isReportUnwritten;
  }

  /**
   * Whether etcd has the last confirmed heartbeat or a later one; otherwise it was restored to an
   * earlier state. A missing heartbeat proves nothing here, because etcd deletes it with its lease
   * (see `#enterIfKept`). Throws EtcdError.
   */
  async isKept(): Promise<boolean> {
    const confirmed = this.#heartbeat;
    const { at } = await this.#heartbeatInEtcd();
    return at === 0 || at >= confirmed;
  }

  /** Why etcd rejects this server's requests; undefined if it accepts them or is silent. */
  get refusal(): string | undefined {
    return this.#failure?.kind === 'unknown' ? undefined : this.#failure?.message;
  }

  follow(listener: () => void): Subscription {
    return this.#listeners.subscribe(listener);
  }

  /** Call this when published records of servers may have changed. */
  checkLeader(): void {
    const { published, log, clock } = this.#parts;
    const { leader } = published;
    const isLed = leader !== undefined && published.servers.has(leader) && !this.#isSilent(leader, leaderSilentAfter);
    if (!isLed && this.#lease !== 0 && !this.#isTaking) void this.#lead();
    const isLeader = this.#isLeader;
    if (isLeader !== (this.#ledSinceMs !== undefined)) {
      this.#ledSinceMs = isLeader ? clock.now() : undefined;
      log.info(isLeader ? 'peers.leads' : 'peers.follows', { server: this.id });
    }
    this.#listeners.notify();
  }

  /** Resolves once the lease has ended, or could not be ended. */
  async leave(): Promise<void> {
    this.#closing.abort();
    this.#cancelReport?.();
    if (this.#lease !== 0) await this.#attempt(() => this.#parts.client.endLease(this.#lease));
  }

  /**
   * Gets a lease, and writes this server's record, fence and heartbeat in one transaction with the
   * given comparisons and operations. Resolves with whether the comparisons held. Throws EtcdError.
   */
  async enter({ compare, success }: Pick<TxnRequest, 'compare' | 'success'> = nothingMore): Promise<boolean> {
    const { client, clock, random, reach } = this.#parts;
    const askedMs = clock.now();
    const lease = randomLease(random);
    await client.grantLease({ id: lease, ttlSeconds: leaseSeconds });
    const own = [this.#put('server', lease), this.#put('fence', lease), this.#put('heartbeat', lease)];
    const { succeeded, revision } = await client.txn({ compare, success: [...success, ...own], failure: [] });
    if (succeeded) {
      this.#heartbeat = revision;
      this.#lease = lease;
      this.#leaseUntilMs = askedMs + leaseMs;
      this.#leadsUntilMs = askedMs + leadsSilentlyMsMax;
    }
    await reach(revision);
    return succeeded;
  }

  /** Concurrent callers share one new lease. */
  async #enterAgain(): Promise<void> {
    this.#entering ??= this.#enterIfKept().finally(() => (this.#entering = undefined));
    await this.#entering;
  }

  /**
   * Gets a new lease. Throws EtcdError if a restore has lost the last published heartbeat. If etcd
   * deleted it with its lease, the delete is published here.
   */
  async #enterIfKept(): Promise<void> {
    const { published, reach, contradicted } = this.#parts;
    const shown = published.heartbeats.get(this.id);
    const { at, revision } = await this.#heartbeatInEtcd();
    await reach(revision);
    if (shown !== undefined && at < shown && published.heartbeats.get(this.id) === shown) {
      contradicted();
      throw new EtcdError('refused', 'etcd has lost changes that this server has published');
    }
    await this.enter();
  }

  async #keep(): Promise<void> {
    const { clock } = this.#parts;
    for (let failure: EtcdError | undefined; !this.#closing.signal.aborted;) {
      // The retry is quick only after no answer: a rejection would repeat, and an etcd whose quota
      // is used up still renews leases.
      await pause(clock, failure === undefined || failure.kind !== 'unknown' ? keepIntervalMs : retryMs, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      failure = await this.#attempt(() => this.#keepOnce());
      if (this.#isReportUnwritten) await this.#writeReport();
      this.checkLeader();
    }
  }

  async #keepOnce(): Promise<void> {
    const { client, clock } = this.#parts;
    const askedMs = clock.now();
    const leftSeconds = await client.keepLease(this.#lease, answerMsMax).catch(async (error: unknown) => {
      // The next answer may come from a restored etcd, so this server requests its revision again.
      this.#revisionToReach = undefined;
      if (clock.now() < this.#leaseUntilMs) throw error;
      // Some endpoints answer every call but this one. The lease is ended first, because its leader
      // record may name this server.
      await client.endLease(this.#lease);
      return 0;
    });
    if (leftSeconds <= 0) return this.#enterAgain();
    this.#leaseUntilMs = askedMs + leaseMs;
    await this.#raiseHeartbeat();
  }

  async #raiseHeartbeat(): Promise<void> {
    const nowMs = this.#parts.clock.now();
    if (this.#revisionToReach === undefined || nowMs - this.#revisionToReach.askedMs > leaseMs)
      this.#revisionToReach = { ...(await this.#heartbeatInEtcd()), askedMs: nowMs };
    await this.#reachSoon(this.#revisionToReach.revision);
    this.#revisionToReach = undefined;
    const key = this.#keyOf({ kind: 'heartbeat', id: this.id });
    const compare = [{ key, revision: this.#heartbeat }];
    const asked: TxnRequest = { compare, success: [this.#put('heartbeat')], failure: [{ kind: 'range', request: { key } }] };
    const askedMs = this.#parts.clock.now();
    const { succeeded, revision, ranges } = await this.#parts.client.txn(asked, answerMsMax).catch((error: unknown) => {
      // An etcd whose quota is used up accepts no heartbeats, but needs a leader that compacts it.
      if (error instanceof EtcdError && error.kind === 'full') this.#leadsUntilMs = askedMs + leadsSilentlyMsMax;
      throw error;
    });
    const at = succeeded ? revision : (ranges[0]?.kvs[0]?.revision ?? 0);
    // A later heartbeat is no loss: etcd applied an unanswered write, or this server has a new
    // lease.
    if (at < this.#heartbeat) return this.#enterAgain();
    this.#heartbeat = at;
    if (!succeeded) return;
    this.#leadsUntilMs = askedMs + leadsSilentlyMsMax;
    this.#countSilence();
  }

  /**
   * Counts for how many heartbeats of this server the heartbeats of others have stayed the same.
   * Heartbeats that were in etcd shortly before are published by now, so none is missed.
   */
  #countSilence(): void {
    const { heartbeats } = this.#parts.published;
    for (const id of this.#silence.keys()) if (!heartbeats.has(id)) this.#silence.delete(id);
    for (const [id, heartbeat] of heartbeats) {
      const before = this.#silence.get(id);
      this.#silence.set(id, { heartbeat, raised: before?.heartbeat === heartbeat ? before.raised + 1 : 0 });
    }
  }

  #isSilent(id: string, after: number): boolean {
    return id !== this.id && (this.#silence.get(id)?.raised ?? 0) >= after;
  }

  /**
   * Rejects with an EtcdError after `answerMsMax`, because a server that is behind must still renew
   * its lease.
   */
  async #reachSoon(revision: Revision): Promise<void> {
    const { clock, reach } = this.#parts;
    const late = new AbortController();
    const cancel = clock.after(answerMsMax, () =>
      late.abort(new EtcdError('unknown', `this server has not published revision ${revision} of etcd yet`)),
    );
    await untilAborted(reach(revision), late.signal).finally(cancel);
  }

  /** `at`: the revision of this server's heartbeat; 0 if there is none. `revision`: etcd's. */
  async #heartbeatInEtcd(): Promise<Readonly<{ at: Revision; revision: Revision }>> {
    const { kvs, revision } = await this.#parts.client.range({ key: this.#keyOf({ kind: 'heartbeat', id: this.id }) });
    return { at: kvs[0]?.revision ?? 0, revision };
  }

  async #lead(): Promise<void> {
    this.#isTaking = true;
    const key = this.#keyOf({ kind: 'leader' });
    const value = Buffer.from(this.id);
    // A leader record that names an unknown server was copied into this etcd, and is replaced.
    const compare = [{ key, revision: this.#parts.published.leaderRevision }];
    await this.#attempt(async () => {
      await this.#parts.client.txn({ compare, success: [{ kind: 'put', key, value, lease: this.#lease }], failure: [] });
    });
    this.#isTaking = false;
  }

  async #writeReport(): Promise<void> {
    const failure = await this.#attempt(async () => {
      await this.#parts.client.txn({ compare: [], success: [this.#put('server')], failure: [] });
    });
    this.#isReportUnwritten = failure !== undefined;
  }

  #put(kind: 'server' | 'fence' | 'heartbeat', lease = this.#lease): Operation {
    const value = kind === 'server' ? formatServerRecord(this.#state) : emptyValue;
    return { kind: 'put', key: this.#keyOf({ kind, id: this.id }), value, lease };
  }

  /** Resolves with the error, if any. Failures of one kind in a row are logged only once. */
  async #attempt(run: () => Promise<void>): Promise<EtcdError | undefined> {
    const before = this.#failure;
    try {
      await run();
      this.#failure = undefined;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      this.#failure = error;
      if (error.kind !== before?.kind) this.#parts.log.warn('peers.report-failed', { message: error.message });
    }
    return this.#failure;
  }

  #keyOf(key: RecordKey): Uint8Array {
    return Buffer.from(formatRecordKey(this.#parts.prefix, key));
  }
}

export function randomLease(random: () => number): number {
  return 1 + Math.floor(random() * idMax);
}
