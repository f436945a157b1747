/**
 * The SQLite engine behind the Store port: a committer in its own thread writes, this thread reads with its own
 * connection, and shows one published revision.
 *
 *   submit ─▶ MutationQueue ─▶ committer ─▶ #publish: raise `published`, tell subscribers, answer writers, all in one tick
 *   push ───▶ (lanes)
 *
 * I11 `published` rises only, and only here. I12 `compacted` is raised before the committer is asked to compact, so that
 * no reader starts below it.
 */
import { sweepDeletesMax } from '../asked.js';
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers';
import type { Commit } from '../../domain/change.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import { deferred } from '../../domain/deferred.js';
import { CacheError, expired, Refused, unreachable, type Refusal } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { Mutation, Outcome } from '../../domain/mutation.js';
import type { StoredObject } from '../../domain/object.js';
import type { Subscription } from '../../domain/ports.js';
import type { PushLane, Snapshot, Store, LogChunk, LogType, Touch } from '../../domain/store-port.js';
import { halfRemoved } from '../../domain/push.js';
import type { Resource } from '../../domain/resource.js';
import type { Located, Revision } from '../../domain/revision.js';
import type { Scope } from '../../domain/scope.js';
import type { ShardName } from '../../domain/shard.js';
import { ChangeLog } from './change-log.js';
import type { CommitterThread, FromCommitter, ToCommitter } from './committer-messages.js';
import { CompactionSchedule } from './compaction-schedule.js';
import { commitBytesMax, Holds, type LogState } from '../compactor.js';
import type { Connection } from './database.js';
import { alone } from '../alone.js';
import { Epochs } from '../epochs.js';
import type { Life } from './life.js';
import { askedOf, type Part } from '../lane.js';
import type { Lock } from './lock.js';
import { Moments } from './moments.js';
import { MutationQueue } from '../mutation-queue.js';
import { Publication } from './publication.js';
import { Reader } from './reader.js';
import { RecentObjects } from './recent-objects.js';
import { Rows } from './rows.js';
import { readShards } from './shard-table.js';
import { readLinks } from './link-table.js';
import { readSlices } from './slice-table.js';
import { State } from '../state.js';
import { SqliteSnapshot } from './snapshot.js';
import { bytesOf } from './store-files.js';
import type { StoreLimits, StoreParts } from './store-options.js';
import { Walks } from './walks.js';
import { packBatch } from './wire-batch.js';
import { unpackDecisions } from './wire-decisions.js';
import { WriteHealth } from './write-health.js';

const closing: Refusal = { reason: 'ServiceUnavailable', message: 'the server is shutting down' };
const failed: Refusal = { reason: 'ServiceUnavailable', message: 'the store has failed' };

/** What opening has made of a data directory. `soon` runs a task in a later turn of the event loop; a simulation has one of its own. */
export type Opened = Readonly<{
  lock: Pick<Lock, 'release'>;
  life: Life;
  worker: CommitterThread;
  reader: Connection;
  soon?: (task: () => void) => void;
}>;

export class SqliteStore implements Store {
  readonly peers = alone;
  readonly unreadableKeys = 0;
  readonly cacheId: string;
  readonly state: State;
  readonly #lock: Opened['lock'];
  readonly #worker: CommitterThread;
  readonly #reader: Connection;
  readonly #epochs: Epochs;
  readonly #recent: RecentObjects;
  readonly #rows: Rows;
  readonly #walks: Walks;
  readonly #changeLog: ChangeLog;
  readonly #queue: MutationQueue;
  readonly #holds: Holds;
  readonly #limits: StoreLimits;
  readonly #parts: StoreParts;
  readonly #publication: Publication;
  readonly #health: WriteHealth;
  readonly #points: Reader;
  readonly #compaction: CompactionSchedule;
  readonly #moments: Moments;
  readonly #listeners = new Set<(commit: Commit) => void>();
  readonly #failure = deferred<Error>();
  readonly #closed = deferred<void>();
  readonly #turn: () => Promise<void>;
  #inFlight: readonly Part[] = [];
  #published: Revision;
  #compacted: Revision;
  /** How far the committer has compacted. */
  #compactedOnDisk: Revision;
  /** The committer's next turn is compaction's: commits wait. */
  #isWaiting = false;
  #logBytes: number;
  #closing = false;

  constructor({ lock, life, worker, reader, soon = setImmediate }: Opened, limits: StoreLimits, parts: StoreParts) {
    this.#lock = lock;
    this.#worker = worker;
    this.#reader = reader;
    this.#limits = limits;
    this.#parts = parts;
    this.cacheId = life.cacheId;
    this.#epochs = new Epochs(life.epochs);
    this.#published = life.revision;
    this.#compacted = life.compacted;
    this.#compactedOnDisk = life.compacted;
    this.#logBytes = life.logBytes;
    this.#recent = new RecentObjects(limits.recentBytesMax);
    this.#rows = new Rows(reader, {
      recent: this.#recent,
      format: (revision) => this.format(revision),
      damaged: (error) => this.damaged(error),
    });
    this.#walks = new Walks(this.#rows);
    this.#turn = () => new Promise((resolve) => void soon(resolve));
    this.#changeLog = new ChangeLog(this.#rows, { format: (revision) => this.format(revision), turn: this.#turn });
    this.#publication = new Publication(this.#rows, this.#changeLog, (revision) => this.format(revision), limits.keptNames);
    this.#health = new WriteHealth({ ...parts, probe: () => this.#post({ kind: 'probe' }) });
    this.#holds = new Holds(limits.snapshotHoldMs);
    this.#points = new Reader(
      { rows: this.#rows, walks: this.#walks, published: () => this.#published },
      { commitMax: Math.max(limits.queue.batchMutationsMax, sweepDeletesMax) },
    );
    // The committer has not begun yet.
    this.state = new State({ shards: readShards(reader), slices: readSlices(reader), links: readLinks(reader) });
    const queueLimits = { ...limits.queue, batchBytesMax: Math.min(limits.queue.batchBytesMax, commitBytesMax(limits.history)) };
    this.#queue = new MutationQueue(queueLimits, {
      send: (batch) => this.#send(batch),
      soon,
      objectsOf: (slice) => this.state.slice(slice)?.objects ?? 0,
    });
    worker.on('message', (message: FromCommitter) => this.#receive(message));
    worker.on('error', (error) => this.#fail(error));
    worker.on('exit', (code) => this.#fail(new CacheError(`the committer has stopped (exit code ${code})`)));
    const { historyAgeMs, tombstoneAgeMs } = limits.history;
    this.#moments = new Moments(reader, historyAgeMs, parts.clock.now());
    const tombstoneMoments = new Moments(reader, tombstoneAgeMs, parts.clock.now());
    this.#compaction = new CompactionSchedule(
      {
        clock: parts.clock,
        state: () => this.#logState(),
        agedTombstones: () => tombstoneMoments.aged(parts.clock.now()),
        raise: (compacted) => (this.#compacted = Math.max(this.#compacted, compacted)),
        step: (order) => this.#post({ kind: 'compact', ...order }),
      },
      limits.history,
    );
    this.#finishRemovals();
  }

  get epoch(): number {
    return this.#epochs.current;
  }

  get published(): Revision {
    return this.#published;
  }

  get compacted(): Revision {
    return this.#compacted;
  }

  get waiting(): Readonly<{ mutations: number; bytes: number }> {
    return { mutations: this.#queue.length, bytes: this.#queue.bytes };
  }

  /** As it is on the disk. */
  get logged(): Readonly<{ changes: number; bytes: number }> {
    return { changes: this.#published - this.#compactedOnDisk, bytes: this.#logBytes };
  }

  get isOpen(): boolean {
    return this.#reader.open;
  }

  get lastFailure(): string | undefined {
    return this.#health.lastFailure;
  }

  /** Resolves when the committer has died. */
  get failed(): Promise<Error> {
    return this.#failure.promise;
  }

  /** A read has met damage: nothing more is served. The store ends with the committer. */
  damaged(error: Error): void {
    this.#failure.resolve(new CacheError('the store is damaged', { cause: error }));
    void this.#worker.terminate();
  }

  format(revision: Revision): string {
    return this.#epochs.format(revision);
  }

  locate(text: string): Located {
    return this.#epochs.locate(text, this.#published);
  }

  /** Every text names its life. */
  formatPosition(revision: Revision): string {
    return this.format(revision);
  }

  locatePosition(text: string): Located {
    return this.locate(text);
  }

  /** Nobody else writes: it is. */
  async reachNewest(): Promise<void> {}

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
    return this.#recent.current(key) ?? this.#points.get(key);
  }

  async find(scope: Scope): Promise<readonly StoredObject[]> {
    return this.#points.find(scope);
  }

  snapshot(scope: Scope, revision: Revision): Snapshot {
    assert(revision <= this.#published, 'a snapshot of the future');
    const assertCovered = (): void => this.#assertCovered(revision);
    assertCovered();
    const release = this.#holds.hold(revision, this.#parts.clock.now());
    const parts = { rows: this.#rows, walks: this.#walks, assertCovered, release, clock: this.#parts.clock, turn: this.#turn };
    return new SqliteSnapshot(scope, revision, parts, this.#limits.snapshot);
  }

  async count(scope: Scope, after: Key | undefined, max: number): Promise<number | undefined> {
    return this.#points.count(scope, after, max);
  }

  async changes(type: LogType, range: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): Promise<LogChunk> {
    return this.#changeLog.changes(type, range, { isWanted, assertCovered: (position) => this.#assertCovered(position) });
  }

  everyChange(range: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): AsyncIterable<LogChunk> {
    return this.#changeLog.everyChange(range, { isWanted, assertCovered: (position) => this.#assertCovered(position) });
  }

  /** Each change has a revision of its own. */
  hasSeveral(): boolean {
    return false;
  }

  remembers(after: Revision): boolean {
    return after >= this.#changeLog.rememberedFrom;
  }

  touched(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Touch[]> {
    return this.#changeLog.touched(scope, range, (position) => this.#assertCovered(position));
  }

  async shardsWith(place: Omit<Key, 'shard'>): Promise<readonly ShardName[]> {
    return this.#points.shardsWith(place);
  }

  async clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#points.clustersAt(path);
  }

  async ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#points.ownersOf(path);
  }

  async pathsOf(
    places: readonly Readonly<{ shard: ShardName; cluster: ClusterName }>[],
    at?: Revision,
  ): Promise<readonly (CanonicalPath | undefined)[]> {
    if (at !== undefined) this.#assertCovered(at);
    return this.#points.pathsOf(places, at);
  }

  async resources(): Promise<readonly Resource[]> {
    return this.#points.resources();
  }

  fileBytes(): ReadonlyMap<string, number> {
    const { name } = this.#reader;
    return new Map([
      ['database', bytesOf(name) ?? 0],
      ['log', bytesOf(`${name}-wal`) ?? 0],
    ]);
  }

  beginClose(): void {
    this.#queue.endSweeps(closing);
  }

  async close(): Promise<void> {
    if (this.#closing) return this.#closed.promise;
    this.#closing = true;
    this.#queue.close(closing);
    this.#cancelTasks();
    if (this.#queue.idle) this.#post({ kind: 'close' });
    await this.#closed.promise;
  }

  #assertCovered(position: Revision): void {
    if (position >= this.#compacted) return;
    throw new Refused(expired(`too old resource version: ${this.format(position)} (${this.format(this.#compacted)})`));
  }

  #send(batch: readonly Part[]): void {
    this.#inFlight = batch;
    const packed = packBatch(batch.flatMap(askedOf));
    this.#post({ kind: 'commit', batch: packed, nowMs: this.#parts.clock.now() }, [
      packed.cuts.buffer,
      packed.numbers.buffer,
      packed.bytes.buffer,
    ]);
  }

  #post(message: ToCommitter, handedOver: readonly ArrayBufferLike[] = []): void {
    this.#worker.postMessage(message, handedOver as ArrayBuffer[]);
  }

  #receive(message: FromCommitter): void {
    switch (message.kind) {
      case 'ready':
        return;
      case 'committed':
        this.#publish(message);
        this.#compaction.committed(message.elapsedMs);
        this.#isWaiting = this.#compaction.isFirst;
        return this.#isWaiting ? undefined : this.#goOn();
      case 'failed':
        this.#answerFailed(message.code, message.message);
        return this.#goOn();
      case 'not-compacted':
        this.#parts.log.error('store.compaction-failed', { code: message.code, message: message.message });
        this.#compaction.failed();
        return this.#endWait();
      case 'probed':
        return message.failure === undefined ? this.#health.wrote() : this.#health.failed(message.failure);
      case 'compacted':
        this.#logBytes = message.logBytes;
        this.#compactedOnDisk = message.compacted;
        this.#compaction.stepped(message, message.elapsedMs);
        this.#parts.observe.compacted(message.compacted, message.elapsedMs);
        return this.#endWait();
      case 'closed':
        return this.#finish();
      default:
        return unreachable(message);
    }
  }

  #publish(committed: Extract<FromCommitter, { kind: 'committed' }>): void {
    const batch = this.#inFlight;
    this.#inFlight = [];
    const decided = unpackDecisions(committed.decisions);
    if (committed.begun !== undefined) this.#epochs.add(committed.begun);
    const { changes, answers } = this.#publication.of(batch, { ...committed, decided });
    assert(committed.revision >= this.#published, 'I11');
    this.#published = committed.revision;
    this.#logBytes = committed.logBytes;
    for (const change of changes) {
      if (change.kind === 'put') this.#recent.publish(change.object);
      else this.#recent.forget(change.key);
    }
    const { revision, shards, slices, links, moves, swept } = committed;
    this.state.publish({ shards, slices, links, invalidated: [] });
    const movedPaths = moves.flatMap(({ before, after }) => [before, after].filter((path) => path !== undefined));
    const commit: Commit = { revision, changes, movedPaths, swept: new Set(swept.map((each) => each.revision)) };
    if (changes.length > 0) for (const listener of this.#listeners) listener(commit);
    for (const answer of answers) {
      if (answer.kind === 'mutation') answer.job.answer(answer.outcome);
      else this.#queue.settlePushes(answer.part, answer.outcomes);
    }
    if (changes.length > 0) this.#health.wrote();
    const refused = decided.filter(({ kind }) => kind === 'refused' || kind === 'fenced').length;
    this.#parts.observe.committed({ written: changes.length, refused }, committed.elapsedMs);
  }

  #answerFailed(code: string, message: string): void {
    const batch = this.#inFlight;
    this.#inFlight = [];
    this.#parts.log.error('store.commit-failed', { code, message, mutations: batch.flatMap(askedOf).length });
    this.#health.failed(message);
    this.#queue.refuseBatch(batch, { reason: 'ServiceUnavailable', message: `the store cannot write (${code})` });
  }

  #goOn(): void {
    this.#queue.settled();
    if (!this.#queue.pump() && this.#closing) this.#post({ kind: 'close' });
  }

  #endWait(): void {
    if (!this.#isWaiting || this.#compaction.isFirst) return;
    this.#isWaiting = false;
    this.#goOn();
  }

  /** The state of the log, for compaction (compactor.ts). */
  #logState(): LogState {
    const nowMs = this.#parts.clock.now();
    return {
      published: this.#published,
      compacted: this.#compactedOnDisk,
      bytes: this.#logBytes,
      agedRevision: this.#moments.aged(nowMs),
      overdueMs: this.#moments.overdueMs(this.#compactedOnDisk, nowMs),
      heldRevision: this.#holds.lowest(nowMs),
    };
  }

  /** Removals that the previous life has left undone: their fences stand. */
  #finishRemovals(): void {
    const { log } = this.#parts;
    const shards = halfRemoved(this.state.shards, this.state.slices);
    if (shards.length === 0) return;
    void this.#queue
      .lane()
      .push(shards.map((shard) => ({ kind: 'clear', shard, fence: false, nowMs: 0 })))
      .then((outcomes) => shards.forEach((shard, i) => log.info('store.removal-finished', { shard, ...outcomes[i] })));
  }

  #cancelTasks(): void {
    this.#compaction.close();
    this.#health.close();
  }

  #fail(error: Error): void {
    if (this.#closing && this.#inFlight.length === 0) return this.#finish();
    this.#queue.close(failed);
    this.#queue.refuse(this.#inFlight, failed);
    this.#queue.refuseAll(failed);
    this.#closing = true;
    this.#cancelTasks();
    this.#finish();
    this.#failure.resolve(error);
  }

  #finish(): void {
    if (!this.#reader.open) return;
    this.#reader.close();
    this.#lock.release();
    this.#closed.resolve();
  }
}
