/**
 * The servers of one etcd. Each has a record of its own that goes when the server does, because it lies in a lease; one of them is the leader, and does what is
 * to be done once.
 *
 *   joins: a lease, a record ──▶ keeps the lease, raises its heartbeat ──┬─▶ leaves: ends the lease, so that another leads at once
 *             ▲                                                          └─▶ the lease is gone (it was frozen, or cut off)
 *             └──────────────────────────────────────────────────────────────┘
 *
 * Beside its record each has a fence. Every write of a server holds only while its fence is as it was, so once the fence is renewed, nothing that it sent before can
 * arrive any more.
 *
 * Each also has a heartbeat, which it writes again and again. A heartbeat that changes is the only proof that a server runs: etcd gives every lease its whole time
 * again when another member leads. One that is silent while this server raises its own four times is none of `others`; a leader that is silent three times as long is
 * replaced. A server raises no heartbeat after a restore, and learns of it: etcd takes a heartbeat only where it holds the one before, and what a
 * restored etcd holds, which may be that one, is never published here.
 *
 * V1 Two servers never both take themselves for the leader, as far as their clocks run equally fast: a leader stops a lease's time after it asked to keep it,
 *    and etcd gives the lead away no earlier; it stops 30 s after it last raised its heartbeat, and others take the lead 40 s after that was published.
 */
import type { Log } from '../../diagnostics/log.js';
import { pause } from '../../domain/pause.js';
import { Listeners } from '../../domain/listeners.js';
import type { Clock, Subscription } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import type { Peers, PeerState } from '../../domain/store-port.js';
import { untilAborted } from '../../domain/until-aborted.js';
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
  /** etcd has lost what is published here. */
  contradicted: () => void;
}>;

const leaseSeconds = 10;
export const leaseMs = leaseSeconds * 1_000;
/** Three times within its time. */
const keepIntervalMs = leaseMs / 3;
const retryMs = 200;
/** A new leader of etcd is there sooner, and does not know of what the former was asked. */
const answerMsMax = 2_000;
/** Of heartbeats of this server: then another one that has raised none is silent. Between two of them lie `keepIntervalMs`. */
const silentAfter = 4;
/** Then it leads no more: whoever is behind etcd for long raises none, and yet may lead. */
const leaderSilentAfter = 12;
const leadsSilentlyMsMax = 30_000;
const unsaid = new Uint8Array();
const nothingMore = { compare: [], success: [] };
/** What has changed is told together. */
const tellDelayMs = 200;
const idMax = 2 ** 47;

export class EtcdPeers implements Peers {
  readonly #parts: EtcdPeersParts;
  readonly id: string;
  readonly #listeners = new Listeners<void>();
  readonly #closing = new AbortController();
  #lease = 0;
  #leaseUntilMs = 0;
  #state: PeerState = { pushers: new Map(), heard: new Map() };
  #cancelTell: (() => void) | undefined;
  #isTaking = false;
  #entering: Promise<void> | undefined;
  /** The revision of the heartbeat that etcd confirmed last. */
  #heartbeat: Revision = 0;
  /** What etcd held when that was asked, and is published here before the next heartbeat. A server that stays some seconds behind asks once for each. */
  #due: Readonly<{ revision: Revision; askedMs: number }> | undefined;
  #leadsUntilMs = 0;
  /** For each server its last heartbeat, and how often this one has raised its own since. */
  readonly #heard = new Map<string, Readonly<{ heartbeat: Revision; raised: number }>>();
  /** Why etcd did not take what was asked last; undefined: it did. */
  #failure: EtcdError | undefined;
  /** What was to be told last could not be. */
  #isUntold = false;
  #ledSinceMs: number | undefined;

  constructor(parts: EtcdPeersParts) {
    this.#parts = parts;
    this.id = Math.floor(parts.random() * idMax)
      .toString(16)
      .padStart(12, '0');
  }

  /** Keeps what it has entered, or enters now. Throws EtcdError. */
  async join(): Promise<void> {
    if (this.#lease === 0) await this.#enterAgain();
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
    const { revision } = await this.#parts.client.txn({ compare: [], success: [this.#putFence(this.#lease)], failure: [] }, answerMsMax);
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
   * Whether etcd has the heartbeat that it confirmed last, or a later one; if not, it was restored to what it held before. One that is gone proves nothing here, because
   * it goes with its lease: `#enterAgain` looks closer. Throws EtcdError.
   */
  async isKept(): Promise<boolean> {
    const confirmed = this.#heartbeat;
    const { at } = await this.#heartbeatInEtcd();
    return at === 0 || at >= confirmed;
  }

  /** Why etcd takes no heartbeat, where that does not pass by itself. */
  get refusal(): string | undefined {
    return this.#failure?.kind === 'unknown' ? undefined : this.#failure?.message;
  }

  follow(listener: () => void): Subscription {
    return this.#listeners.subscribe(listener);
  }

  /** What is published of servers may have changed. */
  look(): void {
    const { published, log, clock } = this.#parts;
    const { leader } = published;
    const isLed = leader !== undefined && published.servers.has(leader) && !this.#isSilent(leader, leaderSilentAfter);
    if (!isLed && this.#lease !== 0 && !this.#isTaking) void this.#lead();
    const isLeader = this.#isLeader;
    if (isLeader !== (this.#ledSinceMs !== undefined)) {
      this.#ledSinceMs = isLeader ? clock.now() : undefined;
      log.info(isLeader ? 'peers.leads' : 'peers.follows', { server: this.id });
    }
    this.#listeners.tell();
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
    const lease = randomLease(random);
    await client.grantLease({ id: lease, ttlSeconds: leaseSeconds });
    const own = [this.#putServer(lease), this.#putFence(lease), this.#putHeartbeat(lease)];
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

  /** Those who find at the same time that the lease is gone share a new one. */
  async #enterAgain(): Promise<void> {
    this.#entering ??= this.#enterIfKept().finally(() => (this.#entering = undefined));
    await this.#entering;
  }

  /** A heartbeat that is published, but not in etcd at a later revision, was lost by a restore. What goes with its lease is published as gone. */
  async #enterIfKept(): Promise<void> {
    const { published, reach, contradicted } = this.#parts;
    const shown = published.heartbeats.get(this.id);
    const { at, revision } = await this.#heartbeatInEtcd();
    await reach(revision);
    if (shown !== undefined && at < shown && published.heartbeats.get(this.id) === shown) {
      contradicted();
      throw new EtcdError('refused', 'etcd does not hold what is published here');
    }
    await this.enter();
  }

  async #keep(): Promise<void> {
    const { clock } = this.#parts;
    for (let failure: EtcdError | undefined; !this.#closing.signal.aborted;) {
      // What is refused now is so in a while, and a full etcd keeps leases all the same.
      await pause(clock, failure === undefined || failure.kind !== 'unknown' ? keepIntervalMs : retryMs, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      failure = await this.#attempt(() => this.#keepOnce());
      if (this.#isUntold) await this.#say();
      this.look();
    }
  }

  async #keepOnce(): Promise<void> {
    const { client, clock } = this.#parts;
    const askedMs = clock.now();
    const leftSeconds = await client.keepLease(this.#lease, answerMsMax).catch(async (error: unknown) => {
      // It may be another etcd that answers next.
      this.#due = undefined;
      if (clock.now() < this.#leaseUntilMs) throw error;
      // Some answer all but this. What lies in the lease ends first: it may name this server as the leader.
      await client.endLease(this.#lease);
      return 0;
    });
    if (leftSeconds <= 0) return this.#enterAgain();
    this.#leaseUntilMs = askedMs + leaseMs;
    await this.#raiseHeartbeat();
  }

  async #raiseHeartbeat(): Promise<void> {
    const nowMs = this.#parts.clock.now();
    if (this.#due === undefined || nowMs - this.#due.askedMs > leaseMs) this.#due = { ...(await this.#heartbeatInEtcd()), askedMs: nowMs };
    await this.#reachSoon(this.#due.revision);
    this.#due = undefined;
    const key = this.#keyOf({ kind: 'heartbeat', id: this.id });
    const compare = [{ key, revision: this.#heartbeat }];
    const asked: TxnRequest = { compare, success: [this.#putHeartbeat(this.#lease)], failure: [{ kind: 'range', request: { key } }] };
    const askedMs = this.#parts.clock.now();
    const { succeeded, revision, ranges } = await this.#parts.client.txn(asked, answerMsMax).catch((error: unknown) => {
      // A full etcd takes no heartbeat of anybody, and needs a leader that compacts.
      if (error instanceof EtcdError && error.kind === 'full') this.#leadsUntilMs = askedMs + leadsSilentlyMsMax;
      throw error;
    });
    const at = succeeded ? revision : (ranges[0]?.kvs[0]?.revision ?? 0);
    // Later than the one compared: one that was not answered has arrived, or this server has entered again meanwhile.
    if (at < this.#heartbeat) return this.#enterAgain();
    this.#heartbeat = at;
    if (!succeeded) return;
    this.#leadsUntilMs = askedMs + leadsSilentlyMsMax;
    this.#hear();
  }

  /** This server has raised its heartbeat, and what etcd held shortly before is published: which of the others have raised theirs? */
  #hear(): void {
    const { heartbeats } = this.#parts.published;
    for (const id of this.#heard.keys()) if (!heartbeats.has(id)) this.#heard.delete(id);
    for (const [id, heartbeat] of heartbeats) {
      const before = this.#heard.get(id);
      this.#heard.set(id, { heartbeat, raised: before?.heartbeat === heartbeat ? before.raised + 1 : 0 });
    }
  }

  #isSilent(id: string, after: number): boolean {
    return id !== this.id && (this.#heard.get(id)?.raised ?? 0) >= after;
  }

  /** Throws EtcdError where that takes long: a server that is behind keeps its lease meanwhile. */
  async #reachSoon(revision: Revision): Promise<void> {
    const { clock, reach } = this.#parts;
    const late = new AbortController();
    const cancel = clock.after(answerMsMax, () =>
      late.abort(new EtcdError('unknown', `revision ${revision} of etcd is not published here yet`)),
    );
    await untilAborted(reach(revision), late.signal).finally(cancel);
  }

  /** Of this server; `at`: the revision of the heartbeat, 0 where there is none. `revision`: where etcd stood then. */
  async #heartbeatInEtcd(): Promise<Readonly<{ at: Revision; revision: Revision }>> {
    const { kvs, revision } = await this.#parts.client.range({ key: this.#keyOf({ kind: 'heartbeat', id: this.id }) });
    return { at: kvs[0]?.revision ?? 0, revision };
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
    const failure = await this.#attempt(async () => {
      await this.#parts.client.txn({ compare: [], success: [this.#putServer(this.#lease)], failure: [] });
    });
    this.#isUntold = failure !== undefined;
  }

  #putServer(lease: number): Operation {
    return { kind: 'put', key: this.#keyOf({ kind: 'server', id: this.id }), value: formatServerRecord(this.#state), lease };
  }

  #putFence(lease: number): Operation {
    return { kind: 'put', key: this.#keyOf({ kind: 'fence', id: this.id }), value: unsaid, lease };
  }

  #putHeartbeat(lease: number): Operation {
    return { kind: 'put', key: this.#keyOf({ kind: 'heartbeat', id: this.id }), value: unsaid, lease };
  }

  /** Resolves with why it could not be done. What goes on failing is logged once. */
  async #attempt(run: () => Promise<void>): Promise<EtcdError | undefined> {
    const before = this.#failure;
    try {
      await run();
      this.#failure = undefined;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      this.#failure = error;
      if (error.kind !== before?.kind) this.#parts.log.warn('peers.not-told', { message: error.message });
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
