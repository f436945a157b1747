/**
 * The etcd engine behind the Store port: what is published is what following etcd has brought; what is written goes to etcd and comes back that way.
 *
 *   submit ─▶ MutationQueue ─▶ committer ─▶ etcd ─▶ follower ─▶ #take: state, history, followers, subscribers, all in one tick
 *   push ───▶ (lanes)                 ▲                           │
 *                                     └──────── published ◀───────┘   only then is the writer answered
 */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers';
import type { Commit } from '../../domain/change.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import { deferred, type Deferred } from '../../domain/deferred.js';
import { CacheError, expired, Refused, type Refusal } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { Mutation, Outcome } from '../../domain/mutation.js';
import type { StoredObject } from '../../domain/object.js';
import type { Subscription } from '../../domain/ports.js';
import type { Resource } from '../../domain/resource.js';
import type { Located, Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { ShardName } from '../../domain/shard.js';
import type { LogChunk, LogType, PushLane, Snapshot, Store, Touch } from '../../domain/store-port.js';
import { Holds } from '../compactor.js';
import { countDigits, formatInEpoch } from '../epochs.js';
import type { MutationJob, Part, PushPart } from '../lane.js';
import { MutationQueue } from '../mutation-queue.js';
import { State } from '../state.js';
import { Syncs } from '../syncs.js';
import type { PushDecision } from '../asked.js';
import { BodyReader } from './body-reader.js';
import type { EtcdClient } from './client.js';
import { EtcdCommitter } from './committer.js';
import { EtcdCompaction } from './compaction.js';
import { Decider } from './decider.js';
import { EtcdError, refusalOf } from './etcd-error.js';
import type { FollowedBatch, Follower } from './follower.js';
import type { HistoryWindow } from './history-window.js';
import { LeaderDuties } from './leader-duties.js';
import type { EtcdPeers } from './peers.js';
import type { PublishedState } from './published-state.js';
import type { RecentBodies } from './recent-bodies.js';
import { EtcdSnapshot } from './snapshot.js';
import type { EtcdLimits, EtcdParts } from './store-options.js';

/** What a store begins with: all that etcd had when it was opened. */
export type Opened = Readonly<{
  client: EtcdClient;
  follower: Follower;
  published: PublishedState;
  window: HistoryWindow;
  bodies: RecentBodies;
  prefix: string;
  peers: EtcdPeers;
  /** Resolves when etcd does not hold what is published. */
  contradicted: Deferred<Error>;
  cacheId: string;
  epoch: number;
}>;

const closing: Refusal = { reason: 'ServiceUnavailable', message: 'the server is shutting down' };
const outlived = 'another server has begun another life of the cache, because it found no server that runs';
const trimIntervalMs = 1_000;
/** Nothing that is served is older, as far as this server knows. */
const unheardMsMax = 10_000;

export class EtcdStore implements Store {
  readonly cacheId: string;
  readonly epoch: number;
  readonly peers: EtcdPeers;
  readonly state: State;
  readonly #opened: Opened;
  readonly #parts: EtcdParts;
  readonly #limits: EtcdLimits;
  readonly #reader: BodyReader;
  readonly #decider: Decider;
  readonly #committer: EtcdCommitter;
  readonly #queue: MutationQueue;
  readonly #holds: Holds;
  readonly #listeners = new Set<(commit: Commit) => void>();
  readonly #closed = deferred<void>();
  readonly #outlived = deferred<Error>();
  readonly #compaction: EtcdCompaction;
  readonly #duties: LeaderDuties;
  #isProbing = false;
  #isTrimming = false;
  #cancelTrim: () => void = () => {};
  #lastFailure: string | undefined;
  #state: 'open' | 'closing' | 'closed' = 'open';

  constructor(opened: Opened, limits: EtcdLimits, parts: EtcdParts) {
    const { client, published, bodies, prefix, cacheId, epoch, follower, window } = opened;
    const { clock } = parts;
    this.#opened = opened;
    this.#parts = parts;
    this.#limits = limits;
    this.cacheId = cacheId;
    this.epoch = epoch;
    this.peers = opened.peers;
    this.state = new State({ shards: published.shards.states(), slices: published.shards.slices(), links: published.shards.links() });
    this.#reader = new BodyReader({ client, prefix, bodies });
    this.#decider = new Decider({ prefix, cacheId, server: this.peers.id, published, underWay: new Syncs() });
    this.#committer = new EtcdCommitter({
      client,
      clock,
      decider: this.#decider,
      published,
      reader: this.#reader,
      reach: (revision) => follower.reach(revision),
      reachNewest: () => follower.reachNewest(),
      fence: () => this.peers.fence,
      renewFence: () => this.peers.renewFence(),
      contradicted: () => opened.peers.contradicted(),
      changesOf: (key, after) => window.changesOf(key, after),
    });
    this.#queue = new MutationQueue(limits.queue, {
      send: (batch) => void this.#commit(batch),
      soon: setImmediate,
      objectsOf: (slice) => this.state.slice(slice)?.objects ?? 0,
    });
    this.#holds = new Holds(limits.snapshotHoldMs);
    const isLeader = (): boolean => this.peers.leadsSinceMs !== undefined;
    this.#compaction = new EtcdCompaction({ ...parts, client, isLeader }, { ageMs: limits.history.ageMs });
    this.#duties = new LeaderDuties({
      published,
      state: this.state,
      clock,
      isLeader,
      clear: async (shards) => {
        await this.#queue.lane().push(shards.map((shard) => ({ kind: 'clear', shard, fence: false, nowMs: 0, onlyRemoved: true })));
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

  /** Resolves when etcd has lost what was published here, or another server has begun a life of the cache that this one is not of. */
  readonly failed: Promise<Error>;

  get lastFailure(): string | undefined {
    const silentMs = this.#parts.clock.now() - this.#opened.follower.heardMs;
    if (silentMs > unheardMsMax) return `etcd has not been heard for ${Math.round(silentMs / 1_000)} s`;
    return this.#lastFailure ?? this.peers.refusal;
  }

  get waiting(): Readonly<{ mutations: number; bytes: number }> {
    return { mutations: this.#queue.length, bytes: this.#queue.bytes };
  }

  /** Of what is in memory; etcd's own log is etcd's. */
  get logged(): Readonly<{ changes: number; bytes: number }> {
    const { size, bytes } = this.#opened.window;
    return { changes: size, bytes };
  }

  get unreadableKeys(): number {
    return this.#opened.published.unreadable;
  }

  /** None of this machine. */
  fileBytes(): ReadonlyMap<string, number> {
    return new Map();
  }

  get published(): Revision {
    return this.#opened.published.revision;
  }

  get compacted(): Revision {
    return this.#opened.window.compacted;
  }

  format(revision: Revision): string {
    return String(revision);
  }

  locate(text: string): Located {
    const revision = Number(text);
    return revision <= this.published ? { kind: 'ours', revision } : { kind: 'above' };
  }

  formatPosition(revision: Revision): string {
    return formatInEpoch(this.epoch, revision);
  }

  locatePosition(text: string): Located {
    const revision = Number(text.slice(-countDigits));
    if (this.formatPosition(revision) !== text) return { kind: 'below' };
    return revision <= this.published ? { kind: 'ours', revision } : { kind: 'above' };
  }

  async reachNewest(): Promise<void> {
    try {
      await this.#opened.follower.reachNewest();
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      throw new Refused({
        reason: 'ServiceUnavailable',
        message: 'etcd does not say what it holds now',
        details: { retryAfterSeconds: 1 },
      });
    }
  }

  submit(mutation: Mutation): Promise<Outcome> {
    return this.#queue.submit(mutation);
  }

  lane(): PushLane {
    return this.#queue.lane();
  }

  subscribe(listener: (commit: Commit) => void): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  async get(key: Key): Promise<StoredObject | undefined> {
    const held = this.#opened.published.objects.get(key);
    return held && (await this.#reader.read([held], this.published))[0];
  }

  async find(scope: Scope): Promise<readonly StoredObject[]> {
    return this.#reader.read(this.#opened.published.objects.at(scope), this.published);
  }

  async shardsWith({ resource, ...place }: Omit<Key, 'shard'>): Promise<readonly ShardName[]> {
    return [...this.#opened.published.objects.at({ ...resource, ...place, shard: '*' })].map(({ key }) => key.shard);
  }

  snapshot(scope: Scope, revision: Revision): Snapshot {
    assert(revision <= this.published, 'a snapshot of the future');
    const { window, published } = this.#opened;
    const assertCovered = (): void => this.#assertCovered(revision);
    assertCovered();
    const release = this.#holds.hold(revision, this.#parts.clock.now());
    const parts = { objects: published.objects, history: window, reader: this.#reader, assertCovered, release };
    return new EtcdSnapshot(scope, revision, parts, this.#limits.snapshot);
  }

  async count(scope: Scope, after: Key | undefined, max: number): Promise<number | undefined> {
    let [looked, counted] = [0, 0];
    for (const { key } of this.#opened.published.objects.look(scope, after)) {
      looked += 1;
      if (looked > max) return undefined;
      if (matches(scope, key)) counted += 1;
    }
    return counted;
  }

  async changes(type: LogType, range: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): Promise<LogChunk> {
    this.#assertCovered(range.after);
    return this.#opened.window.changes(type, range, isWanted);
  }

  async *everyChange({ after, upTo }: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): AsyncGenerator<LogChunk> {
    for (let position = after; position < upTo;) {
      this.#assertCovered(position);
      const chunk = this.#opened.window.everyChange({ after: position, upTo }, isWanted);
      yield chunk;
      position = chunk.upTo;
    }
  }

  hasSeveral(scope: Scope, revision: Revision): boolean {
    return this.#opened.window.hasSeveral(scope, revision);
  }

  remembers(after: Revision): boolean {
    return after >= this.#opened.window.resumableFrom;
  }

  async *touched(scope: Scope, { after, upTo }: { after: Revision; upTo: Revision }): AsyncGenerator<readonly Touch[]> {
    if (after >= upTo) return;
    this.#assertCovered(after);
    const found: Touch[] = [];
    for (const change of this.#opened.window.since(scope, after)) {
      if (change.revision > upTo) break;
      const { key, kind } = change;
      if (matches(scope, key)) found.push({ key, kind, object: () => (change.kind === 'put' ? change.object : undefined) });
    }
    if (found.length > 0) yield found.toReversed();
  }

  async clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#opened.published.paths.clustersAt(path);
  }

  async ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#opened.published.paths.ownersOf(path);
  }

  async pathsOf(
    places: readonly Readonly<{ shard: ShardName; cluster: ClusterName }>[],
    at?: Revision,
  ): Promise<readonly (CanonicalPath | undefined)[]> {
    const { window, published } = this.#opened;
    if (at !== undefined) this.#assertCovered(at);
    const moves = at === undefined ? [] : window.movesSince(at);
    return places.map((place) => {
      const first = moves.find(({ key }) => key.shard === place.shard && key.cluster === place.cluster);
      return first === undefined ? published.paths.pathOf(place) : first.movedPath?.before;
    });
  }

  async resources(): Promise<readonly Resource[]> {
    return this.#opened.published.objects.resources;
  }

  beginClose(): void {
    this.#queue.endSweeps(closing);
  }

  close(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'closing';
      this.#queue.close(closing);
      if (this.#queue.idle) this.#end();
    }
    return this.#closed.promise;
  }

  /** Lets go of history that is over its bounds. */
  trim(): void {
    const { window } = this.#opened;
    const nowMs = this.#parts.clock.now();
    if (window.trim(nowMs, Math.min(this.published, this.#holds.lowest(nowMs) ?? Infinity))) this.#trimSoon();
  }

  /** What following etcd has brought. */
  take(batch: FollowedBatch): void {
    const { published, window } = this.#opened;
    const nowMs = this.#parts.clock.now();
    const taken = published.apply(batch, nowMs);
    const { commit, change } = taken;
    window.add(commit.changes, nowMs, taken.replacedBytes);
    if (window.isFull) this.#trimSoon();
    this.#decider.follow(taken);
    const { shards, slices, links } = change;
    const invalidated = change.invalidated.filter(({ by }) => by !== this.peers.id).map(({ slice }) => slice);
    if (taken.arePeersNew) this.peers.look();
    const { record } = published.cache ?? {};
    if (record?.cacheId !== this.cacheId || record.epoch !== this.epoch) this.#outlived.resolve(new CacheError(outlived));
    this.state.publish({ shards, slices, links, invalidated });
    if (commit.changes.length > 0) for (const listener of this.#listeners) listener(commit);
  }

  #assertCovered(position: Revision): void {
    if (position >= this.compacted) return;
    throw new Refused(expired(`too old resource version: ${this.format(position)} (${this.format(this.compacted)})`));
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
    this.#queue.settled();
    if (!this.#queue.pump() && this.#state === 'closing') this.#end();
  }

  async #mutate({ mutation, answer }: MutationJob, done: Done): Promise<void> {
    try {
      const mutated = await this.#committer.mutate(mutation);
      count(done, mutated);
      answer(mutated.kind === 'refused' ? mutated : { ...mutated, resourceVersion: this.format(mutated.revision) });
    } catch (error) {
      answer(this.#failed(error));
    }
  }

  async #push(parts: readonly PushPart[], done: Done): Promise<void> {
    for (const [i, part] of parts.entries()) {
      try {
        const decisions = await this.#committer.push(part.asked, i < parts.length - 1);
        for (const decision of decisions) count(done, decision);
        this.#queue.settlePushes(part, decisions as readonly PushDecision[]);
      } catch (error) {
        const { refusal } = this.#failed(error);
        return this.#queue.refuseBatch(parts.slice(i), refusal);
      }
    }
  }

  #failed(error: unknown): Extract<Outcome, { kind: 'unavailable' | 'unknown' }> {
    const message = error instanceof Error ? error.message : String(error);
    // What goes on failing is logged once.
    if (message !== this.#lastFailure) this.#parts.log.error('store.commit-failed', { message });
    if (!(error instanceof EtcdError) || error.kind !== 'too-large') this.#lastFailure = message;
    if (error instanceof Refused) return { kind: 'unavailable', refusal: error.refusal };
    if (!(error instanceof EtcdError))
      return { kind: 'unavailable', refusal: { reason: 'InternalError', message: 'the write has failed' } };
    return { kind: error.kind === 'unknown' ? 'unknown' : 'unavailable', refusal: refusalOf(error) };
  }

  /** Where nobody can write, nobody does: so this server tries itself, until etcd takes something again. */
  async #probe(): Promise<void> {
    if (this.#lastFailure === undefined || this.#isProbing) return;
    this.#isProbing = true;
    if (await this.peers.retell()) this.#lastFailure = undefined;
    this.#isProbing = false;
  }

  async #attempt(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** In another turn: who has asked for what has just come is still to be answered from there. */
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
    this.#queue.close(closing);
    this.#queue.refuseAll(closing);
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
