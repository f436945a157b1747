/**
 * The SQLite engine behind the Store port. A committer writes in its own thread. The serving thread
 * reads through its own connection, and shows one published revision.
 *
 *   submit ─▶ MutationQueue ─▶ committer ─▶ #publish: raise `published`, notify subscribers,
 *   push ───▶ (lanes)                                 answer writers, all in one tick
 */
import { sweepDeletesMax } from '../batch-item.js';
import { setImmediate } from 'node:timers';
import type { Log } from '../../diagnostics/log.js';
import type { Commit } from '../../domain/change.js';
import { deferred } from '../../domain/base/promises.js';
import { CacheError, unreachable, type Refusal } from '../../domain/errors.js';
import { Listeners } from '../../domain/base/listeners.js';
import type { Clock } from '../../domain/ports.js';
import type { Peers, Store } from '../../domain/store-port.js';
import { halfRemoved } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import { ChangeLog } from './change-log.js';
import type { CommitterThread, FromCommitter, ToCommitter } from './committer-messages.js';
import { CompactionSchedule } from './compaction-schedule.js';
import { commitBytesMax, SnapshotPins, type LogState } from '../compactor.js';
import type { Connection } from './database.js';
import type { Life } from './life.js';
import { itemsOf, type Part } from '../lane.js';
import type { Lock } from './lock.js';
import { Moments } from './moments.js';
import { MutationQueue } from '../mutation-queue.js';
import { Publication } from './publication.js';
import { Reader } from './reader.js';
import { RecentObjects } from './recent-objects.js';
import { SqliteRevisions } from './revisions.js';
import { Rows } from './rows.js';
import { readShards } from './shard-table.js';
import { readLinks } from './link-table.js';
import { readSlices } from './slice-table.js';
import { State } from '../state.js';
import { bytesOf } from './store-files.js';
import type { StoreParts } from '../store-options.js';
import type { StoreLimits } from './store-options.js';
import { Walks } from './walks.js';
import { packBatch } from './wire-batch.js';
import { unpackDecisions } from './wire-decisions.js';

const closing: Refusal = { reason: 'ServiceUnavailable', message: 'the server is shutting down' };
const failed: Refusal = { reason: 'ServiceUnavailable', message: 'the store has failed' };

/**
 * The opened data directory. `soon`: runs a task in a later turn of the event loop; a simulation
 * replaces it.
 */
export type Opened = Readonly<{
  lock: Pick<Lock, 'release'>;
  life: Life;
  worker: CommitterThread;
  reader: Connection;
  soon?: (task: () => void) => void;
}>;

export class SqliteStore implements Store {
  readonly cacheId: string;
  readonly revisions: SqliteRevisions;
  readonly objects: Reader;
  readonly history: ChangeLog;
  readonly paths: Reader;
  readonly writer: MutationQueue;
  readonly commits = new Listeners<Commit>();
  readonly state: State;
  readonly peers = alone;
  readonly unreadableKeys = 0;
  readonly #opened: Opened;
  readonly #recent: RecentObjects;
  readonly #pins: SnapshotPins;
  readonly #parts: StoreParts;
  readonly #publication: Publication;
  readonly #health: WriteHealth;
  readonly #compaction: CompactionSchedule;
  readonly #moments: Moments;
  readonly #failure = deferred<Error>();
  readonly #closed = deferred<void>();
  #inFlight: readonly Part[] = [];
  #compactedOnDisk: Revision;
  /** Whether commits wait for the step of compaction that is under way. */
  #isWaiting = false;
  #logBytes: number;
  #closing = false;

  constructor(opened: Opened, limits: StoreLimits, parts: StoreParts) {
    const { life, worker, reader, soon = setImmediate } = opened;
    const { clock } = parts;
    this.#opened = opened;
    this.#parts = parts;
    this.cacheId = life.cacheId;
    this.revisions = new SqliteRevisions(life);
    this.#compactedOnDisk = life.compacted;
    this.#logBytes = life.logBytes;
    this.#recent = new RecentObjects(limits.recentBytesMax);
    this.#pins = new SnapshotPins(limits.snapshotHoldMs);
    const { revisions } = this;
    const rows = new Rows(reader, { recent: this.#recent, revisions, damaged: (error) => this.damaged(error) });
    const turn = (): Promise<void> => new Promise((resolve) => void soon(resolve));
    this.history = new ChangeLog(rows, { revisions, turn });
    this.objects = new Reader(
      { rows, walks: new Walks(rows), recent: this.#recent, revisions, pins: this.#pins, clock, turn },
      { commitMax: Math.max(limits.queue.batchMutationsMax, sweepDeletesMax), snapshot: limits.snapshot },
    );
    this.paths = this.objects;
    this.#publication = new Publication(rows, revisions, limits.keptNames);
    this.#health = new WriteHealth({ ...parts, probe: () => this.#post({ kind: 'probe' }) });
    // The committer has not begun yet, so these reads show the published state.
    this.state = new State({ shards: readShards(reader), slices: readSlices(reader), links: readLinks(reader) });
    const queueLimits = { ...limits.queue, batchBytesMax: Math.min(limits.queue.batchBytesMax, commitBytesMax(limits.history)) };
    this.writer = new MutationQueue(queueLimits, {
      send: (batch) => this.#send(batch),
      soon,
      objectsOf: (slice) => this.state.slice(slice)?.objects ?? 0,
    });
    worker.on('message', (message: FromCommitter) => this.#receive(message));
    worker.on('error', (error) => this.#fail(error));
    worker.on('exit', (code) => this.#fail(new CacheError(`the committer has stopped (exit code ${code})`)));
    const { historyAgeMs, tombstoneAgeMs } = limits.history;
    this.#moments = new Moments(reader, historyAgeMs, clock.now());
    const tombstoneMoments = new Moments(reader, tombstoneAgeMs, clock.now());
    this.#compaction = new CompactionSchedule(
      {
        clock,
        state: () => this.#logState(),
        agedTombstones: () => tombstoneMoments.aged(clock.now()),
        raise: (compacted) => revisions.raise(compacted),
        step: (order) => this.#post({ kind: 'compact', ...order }),
      },
      limits.history,
    );
    this.#finishRemovals();
  }

  get epoch(): number {
    return this.revisions.epoch;
  }

  get waiting(): Readonly<{ mutations: number; bytes: number }> {
    const { length, bytes } = this.writer;
    return { mutations: length, bytes };
  }

  get logged(): Readonly<{ changes: number; bytes: number }> {
    return { changes: this.revisions.published - this.#compactedOnDisk, bytes: this.#logBytes };
  }

  get isOpen(): boolean {
    return this.#opened.reader.open;
  }

  get lastFailure(): string | undefined {
    return this.#health.lastFailure;
  }

  /** Resolves when the committer's thread has ended without a `close`, or a read has met damage. */
  get failed(): Promise<Error> {
    return this.#failure.promise;
  }

  /** A read has met damage. The store and the committer end. */
  damaged(error: Error): void {
    this.#failure.resolve(new CacheError('the store is damaged', { cause: error }));
    void this.#opened.worker.terminate();
  }

  fileBytes(): ReadonlyMap<string, number> {
    const { name } = this.#opened.reader;
    return new Map([
      ['database', bytesOf(name) ?? 0],
      ['log', bytesOf(`${name}-wal`) ?? 0],
    ]);
  }

  beginClose(): void {
    this.writer.endSweeps(closing);
  }

  async close(): Promise<void> {
    if (this.#closing) return this.#closed.promise;
    this.#closing = true;
    this.writer.close(closing);
    this.#cancelTasks();
    if (this.writer.idle) this.#post({ kind: 'close' });
    await this.#closed.promise;
  }

  #send(batch: readonly Part[]): void {
    this.#inFlight = batch;
    const packed = packBatch(batch.flatMap(itemsOf));
    this.#post({ kind: 'commit', batch: packed, nowMs: this.#parts.clock.now() }, [
      packed.cuts.buffer,
      packed.numbers.buffer,
      packed.bytes.buffer,
    ]);
  }

  #post(message: ToCommitter, handedOver: readonly ArrayBufferLike[] = []): void {
    this.#opened.worker.postMessage(message, handedOver as ArrayBuffer[]);
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
    if (committed.begun !== undefined) this.revisions.begin(committed.begun);
    const { changes, answers } = this.#publication.changesOf(batch, { ...committed, decided });
    this.revisions.publish(committed.revision);
    this.#logBytes = committed.logBytes;
    for (const change of changes) {
      if (change.kind === 'put') this.#recent.publish(change.object);
      else this.#recent.forget(change.key);
    }
    const { revision, shards, slices, links, moves, swept } = committed;
    this.state.publish({ shards, slices, links, invalidated: [] });
    const movedPaths = moves.flatMap(({ before, after }) => [before, after].filter((path) => path !== undefined));
    const commit: Commit = { revision, changes, movedPaths, swept: new Set(swept.map((each) => each.revision)) };
    if (changes.length > 0) this.commits.notify(commit);
    for (const answer of answers) {
      if (answer.kind === 'mutation') answer.job.answer(answer.outcome);
      else this.writer.answerPushes(answer.part, answer.outcomes);
    }
    if (changes.length > 0) this.#health.wrote();
    const refused = decided.filter(({ kind }) => kind === 'refused' || kind === 'fenced').length;
    this.#parts.observe.committed({ written: changes.length, refused }, committed.elapsedMs);
  }

  #answerFailed(code: string, message: string): void {
    const batch = this.#inFlight;
    this.#inFlight = [];
    this.#parts.log.error('store.commit-failed', { code, message, mutations: batch.flatMap(itemsOf).length });
    this.#health.failed(message);
    this.writer.refuseBatch(batch, { reason: 'ServiceUnavailable', message: `the store cannot write (${code})` });
  }

  #goOn(): void {
    this.writer.batchDecided();
    if (!this.writer.pump() && this.#closing) this.#post({ kind: 'close' });
  }

  #endWait(): void {
    if (!this.#isWaiting || this.#compaction.isFirst) return;
    this.#isWaiting = false;
    this.#goOn();
  }

  #logState(): LogState {
    const nowMs = this.#parts.clock.now();
    return {
      published: this.revisions.published,
      compacted: this.#compactedOnDisk,
      bytes: this.#logBytes,
      agedRevision: this.#moments.aged(nowMs),
      overdueMs: this.#moments.overdueMs(this.#compactedOnDisk, nowMs),
      heldRevision: this.#pins.lowest(nowMs),
    };
  }

  /**
   * Finishes removals that the last stop of the store interrupted. The pushers of these shards are
   * still fenced.
   */
  #finishRemovals(): void {
    const { log } = this.#parts;
    const shards = halfRemoved(this.state.shards, this.state.slices);
    if (shards.length === 0) return;
    void this.writer
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
    this.writer.close(failed);
    this.writer.refuse(this.#inFlight, failed);
    this.writer.refuseAll(failed);
    this.#closing = true;
    this.#cancelTasks();
    this.#finish();
    this.#failure.resolve(error);
  }

  #finish(): void {
    if (!this.#opened.reader.open) return;
    this.#opened.reader.close();
    this.#opened.lock.release();
    this.#closed.resolve();
  }
}

/** A SQLite store has one server, which leads and has no peers. */
const alone: Peers = Object.freeze({
  leadsSinceMs: 0,
  others: new Map(),
  isAlone: true,
  report: () => {},
  follow: () => ({ cancel: () => {} }),
});

const probeIntervalMs = 5_000;

/** `probe`: makes the committer try to write; `wrote` or `failed` follows. */
type WriteHealthParts = Readonly<{ log: Log; clock: Clock; probe: () => void }>;

/**
 * Whether the store can write. After a failure, the store probes every `probeIntervalMs`: a server
 * that is not ready may get no writes, which would show that the disk works again.
 */
class WriteHealth {
  readonly #parts: WriteHealthParts;
  #lastFailure: string | undefined;
  #isClosed = false;
  #cancelProbe: () => void = () => {};

  constructor(parts: WriteHealthParts) {
    this.#parts = parts;
  }

  /** Undefined if the last attempt to write succeeded. */
  get lastFailure(): string | undefined {
    return this.#lastFailure;
  }

  wrote(): void {
    if (this.#lastFailure === undefined) return;
    this.#lastFailure = undefined;
    this.#cancelProbe();
    this.#parts.log.info('store.writes-again');
  }

  failed(message: string): void {
    this.#lastFailure = message;
    this.#cancelProbe();
    if (!this.#isClosed) this.#cancelProbe = this.#parts.clock.after(probeIntervalMs, this.#parts.probe);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelProbe();
  }
}
