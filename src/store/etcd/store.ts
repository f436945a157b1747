/**
 * The etcd engine behind the Store port. It sends each write to etcd, and publishes each change
 * when the follower receives it.
 *
 *   submit ─▶ MutationQueue ─▶ committer ─▶ etcd ─▶ follower ─▶ apply: index, history, state,
 *   push ───▶ (lanes)              ▲                             │    subscribers, in one tick
 *                                  └───────── published ◀────────┘    then the writer is answered
 */
import { setImmediate } from 'node:timers';
import type { Commit } from '../../domain/change.js';
import { deferred, type Deferred } from '../../domain/base/promises.js';
import { CacheError, Refused, type Refusal } from '../../domain/errors.js';
import type { Outcome } from '../../domain/mutation.js';
import { Listeners } from '../../domain/base/listeners.js';
import type { Store } from '../../domain/store-port.js';
import { SnapshotPins } from '../compactor.js';
import type { MutationJob, Part, PushPart } from '../lane.js';
import { MutationQueue } from '../mutation-queue.js';
import { State } from '../state.js';
import { Syncs } from '../syncs.js';
import type { PushDecision } from '../batch-item.js';
import { BodyReader } from './body-reader.js';
import type { EtcdClient } from './client.js';
import { EtcdCommitter } from './committer.js';
import { EtcdCompaction } from './compaction.js';
import { Decider } from './decider.js';
import { EtcdError, refusalOf } from './etcd-error.js';
import type { FollowedBatch, Follower } from './follower.js';
import type { HistoryWindow } from './history-window.js';
import { LeaderDuties } from './leader-duties.js';
import { EtcdObjects } from './objects.js';
import type { EtcdPeers } from './peers.js';
import type { PublishedState } from './published-state.js';
import type { RecentBodies } from './recent-bodies.js';
import { EtcdRevisions } from './revisions.js';
import type { StoreParts } from '../store-options.js';
import type { EtcdLimits } from './store-options.js';

export type Opened = Readonly<{
  client: EtcdClient;
  follower: Follower;
  published: PublishedState;
  window: HistoryWindow;
  bodies: RecentBodies;
  prefix: string;
  peers: EtcdPeers;
  /** Resolves when etcd lacks something that is published. */
  contradicted: Deferred<Error>;
  cacheId: string;
  epoch: number;
}>;

const closing: Refusal = { reason: 'ServiceUnavailable', message: 'the server is shutting down' };
const anotherLife = 'another server has begun another life of the cache, because it found no running server';
const trimIntervalMs = 1_000;
/**
 * After this time without progress of the watch, health reports a failure: the served objects may
 * be outdated.
 */
const silenceMsMax = 10_000;

export class EtcdStore implements Store {
  readonly cacheId: string;
  readonly epoch: number;
  readonly revisions: EtcdRevisions;
  readonly objects: EtcdObjects;
  readonly history: HistoryWindow;
  readonly paths: EtcdObjects;
  readonly writer: MutationQueue;
  readonly commits = new Listeners<Commit>();
  readonly state: State;
  readonly peers: EtcdPeers;
  readonly #opened: Opened;
  readonly #parts: StoreParts;
  readonly #decider: Decider;
  readonly #committer: EtcdCommitter;
  readonly #pins: SnapshotPins;
  readonly #closed = deferred<void>();
  readonly #outlived = deferred<Error>();
  readonly #compaction: EtcdCompaction;
  readonly #duties: LeaderDuties;
  #isProbing = false;
  #isTrimming = false;
  #cancelTrim: () => void = () => {};
  #lastFailure: string | undefined;
  #state: 'open' | 'closing' | 'closed' = 'open';

  constructor(opened: Opened, limits: EtcdLimits, parts: StoreParts) {
    const { client, published, bodies, prefix, cacheId, epoch, follower, window } = opened;
    const { clock } = parts;
    this.#opened = opened;
    this.#parts = parts;
    this.cacheId = cacheId;
    this.epoch = epoch;
    this.peers = opened.peers;
    this.state = new State({ shards: published.shards.states(), slices: published.shards.slices(), links: published.shards.links() });
    this.#pins = new SnapshotPins(limits.snapshotHoldMs);
    this.revisions = new EtcdRevisions(opened);
    this.history = window;
    const reader = new BodyReader({ client, prefix, bodies });
    const { revisions } = this;
    this.objects = new EtcdObjects({ published, history: window, reader, revisions, pins: this.#pins, clock }, limits.snapshot);
    this.paths = this.objects;
    this.#decider = new Decider({ prefix, cacheId, server: this.peers.id, published, syncs: new Syncs() });
    this.#committer = new EtcdCommitter({
      client,
      clock,
      decider: this.#decider,
      published,
      reader,
      reach: (revision) => follower.reach(revision),
      reachNewest: () => follower.reachNewest(),
      fence: () => this.peers.fence,
      renewFence: () => this.peers.renewFence(),
      contradicted: () => opened.peers.contradicted(),
      changesOf: (key, after) => window.changesOf(key, after),
    });
    this.writer = new MutationQueue(limits.queue, {
      send: (batch) => void this.#commit(batch),
      soon: setImmediate,
      objectsOf: (slice) => this.state.slice(slice)?.objects ?? 0,
    });
    const isLeader = (): boolean => this.peers.leadsSinceMs !== undefined;
    this.#compaction = new EtcdCompaction({ ...parts, client, isLeader }, { ageMs: limits.history.ageMs });
    this.#duties = new LeaderDuties({
      published,
      state: this.state,
      clock,
      intervalMs: limits.dutiesIntervalMs,
      isLeader,
      clear: async (shards) => {
        await this.writer.lane().push(shards.map((shard) => ({ kind: 'clear', shard, fence: false, nowMs: 0, onlyRemoved: true })));
      },
      rewrite: (mark) => this.#attempt(() => this.#committer.rewrite(mark)),
    });
    this.failed = Promise.race([follower.failed, opened.contradicted.promise, this.#outlived.promise]);
    void this.failed.then(() => this.#end());
    this.#trimLater();
  }

  get isOpen(): boolean {
    return this.#state !== 'closed';
  }

  /**
   * Resolves when etcd has lost something that is published here, or another server has begun a new
   * life of the cache.
   */
  readonly failed: Promise<Error>;

  get lastFailure(): string | undefined {
    const silentMs = this.#parts.clock.now() - this.#opened.follower.lastProgressMs;
    if (silentMs > silenceMsMax) return `nothing has arrived from etcd for ${Math.round(silentMs / 1_000)} s`;
    return this.#lastFailure ?? this.peers.refusal;
  }

  get waiting(): Readonly<{ mutations: number; bytes: number }> {
    const { length, bytes } = this.writer;
    return { mutations: length, bytes };
  }

  /** The changes in memory; etcd's own log does not count. */
  get logged(): Readonly<{ changes: number; bytes: number }> {
    const { size, bytes } = this.history;
    return { changes: size, bytes };
  }

  get unreadableKeys(): number {
    return this.#opened.published.unreadable;
  }

  /** This engine has no files on this machine. */
  fileBytes(): ReadonlyMap<string, number> {
    return new Map();
  }

  beginClose(): void {
    this.writer.endSweeps(closing);
  }

  close(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'closing';
      this.writer.close(closing);
      if (this.writer.idle) this.#end();
    }
    return this.#closed.promise;
  }

  runDuties(): void {
    this.#duties.runIfDue();
  }

  trim(): void {
    const nowMs = this.#parts.clock.now();
    if (this.history.trim(nowMs, Math.min(this.revisions.published, this.#pins.lowest(nowMs) ?? Infinity))) this.#trimSoon();
  }

  apply(batch: FollowedBatch): void {
    const { published, window } = this.#opened;
    const nowMs = this.#parts.clock.now();
    const taken = published.apply(batch, nowMs);
    const { commit, change } = taken;
    window.add(commit.changes, nowMs, taken.replacedBytes);
    if (window.isFull) this.#trimSoon();
    this.#decider.follow(taken);
    const { shards, slices, links } = change;
    const invalidated = change.invalidated.filter(({ by }) => by !== this.peers.id).map(({ slice }) => slice);
    if (taken.arePeersNew) this.peers.checkLeader();
    const { record } = published.cache ?? {};
    if (record?.cacheId !== this.cacheId || record.epoch !== this.epoch) this.#outlived.resolve(new CacheError(anotherLife));
    this.state.publish({ shards, slices, links, invalidated });
    if (commit.changes.length > 0) this.commits.notify(commit);
  }

  async #commit(batch: readonly Part[]): Promise<void> {
    const startedMs = this.#parts.clock.now();
    const done = { written: 0, refused: 0 };
    const byLane = new Map<unknown, PushPart[]>();
    const mutations: MutationJob[] = [];
    for (const part of batch) {
      if (part.kind === 'mutation') mutations.push(part);
      else byLane.set(part.lane, [...(byLane.get(part.lane) ?? []), part]);
    }
    await Promise.all([
      ...mutations.map((job) => this.#mutate(job, done)),
      ...[...byLane.values()].map((parts) => this.#push(parts, done)),
    ]);
    this.#parts.observe.committed(done, this.#parts.clock.now() - startedMs);
    this.writer.batchDecided();
    if (!this.writer.pump() && this.#state === 'closing') this.#end();
  }

  async #mutate({ mutation, answer }: MutationJob, done: Done): Promise<void> {
    try {
      const mutated = await this.#committer.mutate(mutation);
      count(done, mutated);
      answer(mutated.kind === 'refused' ? mutated : { ...mutated, resourceVersion: this.revisions.format(mutated.revision) });
    } catch (error) {
      answer(this.#failed(error));
    }
  }

  async #push(parts: readonly PushPart[], done: Done): Promise<void> {
    for (const [i, part] of parts.entries()) {
      try {
        const decisions = await this.#committer.push(part.items, i < parts.length - 1);
        for (const decision of decisions) count(done, decision);
        this.writer.answerPushes(part, decisions as readonly PushDecision[]);
      } catch (error) {
        const { refusal } = this.#failed(error);
        return this.writer.refuseBatch(parts.slice(i), refusal);
      }
    }
  }

  #failed(error: unknown): Extract<Outcome, { kind: 'unavailable' | 'unknown' }> {
    const message = error instanceof Error ? error.message : String(error);
    // The same failure in a row is logged once.
    if (message !== this.#lastFailure) this.#parts.log.error('store.commit-failed', { message });
    if (!(error instanceof EtcdError) || error.kind !== 'too-large') this.#lastFailure = message;
    if (error instanceof Refused) return { kind: 'unavailable', refusal: error.refusal };
    if (!(error instanceof EtcdError))
      return { kind: 'unavailable', refusal: { reason: 'InternalError', message: 'the write failed; the server has logged why' } };
    return { kind: error.kind === 'unknown' ? 'unknown' : 'unavailable', refusal: refusalOf(error) };
  }

  /**
   * After a failed write, clients may stop writing. So this server writes its own record until etcd
   * accepts a write.
   */
  async #probe(): Promise<void> {
    if (this.#lastFailure === undefined || this.#isProbing) return;
    this.#isProbing = true;
    if (await this.peers.rewriteReport()) this.#lastFailure = undefined;
    this.#isProbing = false;
  }

  async #attempt(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.#failed(error);
    }
  }

  /**
   * Trims in a later turn, because the committer still needs these changes in history to answer
   * their writers.
   */
  #trimSoon(): void {
    if (this.#isTrimming) return;
    this.#isTrimming = true;
    setImmediate(() => {
      this.#isTrimming = false;
      this.trim();
    });
  }

  #trimLater(): void {
    this.#cancelTrim = this.#parts.clock.after(trimIntervalMs, () => {
      this.trim();
      void this.#probe();
      this.#trimLater();
    });
  }

  async #end(): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#compaction.close();
    this.#duties.close();
    await this.peers.leave();
    this.#cancelTrim();
    this.writer.close(closing);
    this.writer.refuseAll(closing);
    this.#opened.follower.close();
    this.#opened.client.close();
    this.#closed.resolve();
  }
}

type Done = { written: number; refused: number };

function count(done: Done, { kind }: Readonly<{ kind: string }>): void {
  if (kind === 'written') done.written += 1;
  else if (kind === 'refused' || kind === 'fenced') done.refused += 1;
}
