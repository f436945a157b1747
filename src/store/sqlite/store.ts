/**
 * The SQLite engine behind the Store port: a committer in its own thread writes, this thread reads with its own
 * connection, and shows one published revision.
 *
 *   submit ─▶ MutationQueue ─▶ committer ─▶ #publish: raise `published`, tell subscribers, answer writers, all in one tick
 *
 * I11 `published` rises only, and only here. I12 `compacted` is raised before the committer is told to compact, so that
 * no reader starts below it.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Change, Commit } from '../../domain/change.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import { deferred } from '../../domain/deferred.js';
import { CacheError, expired, Refused, unreachable } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { Mutation, Outcome } from '../../domain/mutation.js';
import type { StoredObject } from '../../domain/object.js';
import type { Clock, Snapshot, Store, Subscription } from '../../domain/ports.js';
import type { Located, Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { Log } from '../../diagnostics/log.js';
import { ChangeLog } from './change-log.js';
import type { Committed, CommitterOptions, FromCommitter, ToCommitter } from './committer-messages.js';
import { compactionRowsMax, Holds, nextCompacted, type HistoryLimits } from './compactor.js';
import { openReader, openWriter, type Connection } from './database.js';
import { Epochs } from './epochs.js';
import { begin, type Life } from './life.js';
import { acquireLock, type Lock } from './lock.js';
import { migrate } from './migrate.js';
import { MutationQueue, type QueueLimits, type Waiting } from './mutation-queue.js';
import { RecentObjects } from './recent-objects.js';
import { Rows, type ChangeRow } from './rows.js';
import { SqliteSnapshot, type SnapshotLimits } from './snapshot.js';
import { Walks } from './walks.js';
import { packBatch } from './wire-batch.js';
import { readWitness } from './witness.js';

export type StoreLimits = Readonly<{ queue: QueueLimits; history: HistoryLimits; snapshot: SnapshotLimits; snapshotHoldMs: number; recentBytesMax: number }>;

export type StoreParts = Readonly<{
  log: Log;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  observe: StoreObserver;
}>;

/** What the store tells of itself, for metrics. */
export type StoreObserver = Readonly<{
  committed: (decided: Readonly<{ written: number; refused: number }>, elapsedMs: number) => void;
  compacted: (revision: Revision, elapsedMs: number) => void;
}>;

const momentIntervalMs = 60_000;
const compactIntervalMs = 10_000;
/** A store that could not write tries again by itself this often: nobody may come who writes, least of all while it is not ready. */
const probeIntervalMs = 5_000;
/** A step of compaction is followed by nine times its own length of rest (D4: a tenth of the writer's time). */
const compactionRest = 9;

/** Opens or creates the store in `directory`. Throws a CacheError that says what is wrong. */
export async function openStore(directory: string, migrations: string, limits: StoreLimits, parts: StoreParts): Promise<SqliteStore> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = acquireLock(join(directory, 'strata.lock'), directory);
  try {
    const files = { databaseFile: join(directory, 'strata.db'), witnessFile: join(directory, 'strata.witness') };
    const life = enter(files, migrations, parts.random);
    if (life.rolledBack) parts.log.warn('store.rolled-back', { revision: life.revision, epoch: life.epochs.at(-1)?.epoch });
    const worker = await startCommitter({ ...files, nonce: life.nonce, epoch: life.epochs.at(-1)?.epoch ?? 0, momentIntervalMs });
    return new SqliteStore({ lock, life, worker, reader: openReader(files.databaseFile) }, limits, parts);
  } catch (error) {
    lock.release();
    throw error;
  }
}

export class SqliteStore implements Store {
  readonly #lock: Lock;
  readonly #worker: Worker;
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
  readonly #statements: ReturnType<typeof prepare>;
  readonly #listeners = new Set<(commit: Commit) => void>();
  readonly #failure = deferred<Error>();
  readonly #closed = deferred<void>();
  #inFlight: readonly Waiting[] = [];
  #published: Revision;
  #compacted: Revision;
  #logBytes: number;
  /** Whether the committer has done all it was asked; at first nobody knows what the life before has left undone. */
  #isCompacted = false;
  #closing = false;
  #lastFailure: string | undefined;
  #cancelCompaction: () => void = () => {};
  #cancelProbe: () => void = () => {};

  constructor(opened: { lock: Lock; life: Life; worker: Worker; reader: Connection }, limits: StoreLimits, parts: StoreParts) {
    const { lock, life, worker, reader } = opened;
    this.#lock = lock;
    this.#worker = worker;
    this.#reader = reader;
    this.#limits = limits;
    this.#parts = parts;
    this.#epochs = new Epochs(life.epochs);
    this.#published = life.revision;
    this.#compacted = life.compacted;
    this.#logBytes = life.logBytes;
    this.#recent = new RecentObjects(limits.recentBytesMax);
    this.#rows = new Rows(reader, this.#recent, (revision) => this.format(revision));
    this.#walks = new Walks(this.#rows);
    this.#changeLog = new ChangeLog(this.#rows, (revision) => this.format(revision));
    this.#holds = new Holds(limits.snapshotHoldMs);
    this.#statements = prepare(reader);
    this.#queue = new MutationQueue(limits.queue, { send: (batch) => this.#send(batch), soon: setImmediate });
    worker.on('message', (message: FromCommitter) => this.#receive(message));
    worker.on('error', (error) => this.#fail(error));
    worker.on('exit', (code) => this.#fail(new CacheError(`the committer has stopped (exit code ${code})`)));
    this.#scheduleCompaction(compactIntervalMs);
  }

  get published(): Revision {
    return this.#published;
  }

  get compacted(): Revision {
    return this.#compacted;
  }

  /** Mutations and bytes that wait to be committed. */
  get waiting(): Readonly<{ mutations: number; bytes: number }> {
    return { mutations: this.#queue.length, bytes: this.#queue.bytes };
  }

  get isOpen(): boolean {
    return this.#reader.open;
  }

  /** Why the last batch could not be stored; undefined when it was. */
  get lastFailure(): string | undefined {
    return this.#lastFailure;
  }

  /** Resolves when the committer has died: nothing can be written any more. */
  get failed(): Promise<Error> {
    return this.#failure.promise;
  }

  format(revision: Revision): string {
    return this.#epochs.format(revision);
  }

  locate(text: string): Located {
    return this.#epochs.locate(text, this.#published);
  }

  submit(mutation: Mutation): Promise<Outcome> {
    if (this.#closing) {
      return Promise.resolve({ kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'the server is shutting down' } });
    }
    return this.#queue.submit(mutation);
  }

  subscribe(listener: (commit: Commit) => void): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  async get(key: Key): Promise<StoredObject | undefined> {
    return this.#recent.current(key) ?? this.#reader.transaction(() => this.#get(key))();
  }

  async find(scope: Scope): Promise<readonly StoredObject[]> {
    const { cluster, namespace, name } = scope;
    assert(cluster !== '*' && namespace !== undefined && name !== undefined, 'a place to find names cluster, namespace and name');
    return this.#reader.transaction(() => {
      const standing = this.#rows.resourceIds(scope).flatMap((id) =>
        this.#statements.shardsWith
          .all(cluster, id, namespace, name)
          .map((shard) => ({ resource: this.#rows.resource(id), shard, cluster, namespace, name }) as Key),
      );
      const keys = [...standing, ...this.#deletedUnpublished(scope).map((row) => this.#rows.key(row))].filter((key) => matches(scope, key));
      const distinct = new Map(keys.map((key) => [`${key.resource.identity}|${key.shard}`, key]));
      return [...distinct.values()].flatMap((key) => this.#get(key) ?? []);
    })();
  }

  snapshot(scope: Scope, revision: Revision): Snapshot {
    assert(revision <= this.#published, 'a snapshot of the future');
    const assertCovered = (): void => this.#assertCovered(revision);
    assertCovered();
    const release = this.#holds.hold(revision, this.#parts.clock.now());
    return new SqliteSnapshot(scope, revision, { rows: this.#rows, walks: this.#walks, assertCovered, release }, this.#limits.snapshot);
  }

  async count(scope: Scope, after: Key | undefined, max: number): Promise<number> {
    let counted = 0;
    let position = after;
    for (;;) {
      const { entries, last } = this.#walks.page(scope, position, this.#limits.snapshot.rowsMax);
      counted += entries.filter(({ key }) => matches(scope, key)).length;
      if (last === undefined || counted >= max) return Math.min(counted, max);
      position = last;
      await turn();
    }
  }

  changes(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Change[]> {
    return this.#changeLog.changes(scope, range, (position) => this.#assertCovered(position));
  }

  remembers(after: Revision): boolean {
    return after >= this.#changeLog.rememberedFrom;
  }

  touched(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Key[]> {
    return this.#changeLog.touched(scope, range, (position) => this.#assertCovered(position));
  }

  async clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#statements.clustersAt.all(path) as ClusterName[];
  }

  /** Resources that hold objects: group, resource and identity of each. */
  resources(): readonly { group: string; resource: string; identity: string }[] {
    return this.#statements.resources.all();
  }

  async close(): Promise<void> {
    if (this.#closing) return this.#closed.promise;
    this.#closing = true;
    this.#cancelTasks();
    if (this.#queue.idle) this.#post({ kind: 'close' });
    await this.#closed.promise;
  }

  #get(key: Key): StoredObject | undefined {
    const [id] = this.#rows.resourceIds(key.resource);
    if (id === undefined) return undefined;
    const current = this.#statements.current.get(id, key.shard, key.cluster, key.namespace, key.name);
    if (current !== undefined && current <= this.#published) return this.#rows.object(current);
    const later = this.#deletedUnpublished({ ...key, ...key.resource })[0]?.revision ?? current;
    const held = later === undefined ? undefined : this.#rows.heldAt(later, this.#published);
    return held === undefined ? undefined : this.#rows.object(held);
  }

  /** Deletes that are durable but not yet published, their commit being on the way here, rising: the key may stand there anew. */
  #deletedUnpublished(scope: Scope): readonly ChangeRow[] {
    return this.#walks.deletedSince(this.#published, this.#limits.queue.batchMutationsMax).filter((row) => matches(scope, this.#rows.key(row)));
  }

  #assertCovered(position: Revision): void {
    if (position >= this.#compacted) return;
    throw new Refused(expired(`too old resource version: ${this.format(position)} (${this.format(this.#compacted)})`));
  }

  #send(batch: readonly Waiting[]): void {
    this.#inFlight = batch;
    const packed = packBatch(batch.map(({ mutation }) => mutation));
    this.#post({ kind: 'commit', batch: packed, nowMs: this.#parts.clock.now() }, [packed.numbers.buffer, packed.bytes.buffer]);
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
        return this.#goOn();
      case 'failed':
        this.#answerFailed(message.code, message.message);
        return this.#goOn();
      case 'not-compacted':
        this.#parts.log.error('store.compaction-failed', { code: message.code, message: message.message });
        return this.#scheduleCompaction(compactIntervalMs);
      case 'probed':
        if (message.failure === undefined) this.#heal();
        else this.#scheduleProbe();
        return;
      case 'compacted':
        this.#logBytes = message.logBytes;
        this.#isCompacted = message.done;
        this.#parts.observe.compacted(message.compacted, message.elapsedMs);
        this.#scheduleCompaction(message.done ? compactIntervalMs : message.elapsedMs * compactionRest);
        return;
      case 'closed':
        return this.#finish();
      default:
        return unreachable(message);
    }
  }

  #publish(committed: Committed): void {
    const batch = this.#inFlight;
    this.#inFlight = [];
    const changes: Change[] = [];
    const outcomes = batch.map(({ mutation }, i): Outcome => {
      const decided = committed.decided[i];
      assert(decided !== undefined, 'the committer decides every mutation');
      if (decided.kind === 'refused') return decided;
      const change = this.#changeOf(mutation, decided.revision, decided.replaced);
      changes.push(change);
      return this.#outcomeOf(change);
    });
    for (const { key, revision, replaced } of committed.restated) {
      const change = this.#changeLog.change(
        { ...key, resource: this.#rows.resourceIds(key.resource)[0] ?? 0, kind: 1, revision, replaced },
        key,
      );
      assert(change !== undefined, 'a survivor that was restated is there');
      changes.push(change);
    }
    changes.sort((a, b) => a.revision - b.revision);
    assert(committed.revision >= this.#published, 'I11');
    this.#published = committed.revision;
    this.#logBytes = committed.logBytes;
    for (const change of changes) {
      if (change.kind === 'put') this.#recent.publish(change.object);
      else this.#recent.forget(change.key);
    }
    const commit: Commit = { revision: committed.revision, changes, movedPaths: committed.movedPaths };
    if (changes.length > 0) for (const listener of this.#listeners) listener(commit);
    outcomes.forEach((outcome, i) => batch[i]?.answer(outcome));
    if (changes.length > 0) this.#heal();
    this.#parts.observe.committed({ written: changes.length, refused: batch.length + committed.restated.length - changes.length }, committed.elapsedMs);
  }

  #changeOf(mutation: Mutation, revision: Revision, replaced: Revision): Change {
    const { key } = mutation;
    const resourceVersion = this.format(revision);
    let previous: StoredObject | undefined | null = null;
    const readPrevious = (): StoredObject | undefined => (previous ??= this.#rows.object(replaced)) ?? undefined;
    if (mutation.kind === 'delete') return { kind: 'delete', key, revision, resourceVersion, previous: readPrevious };
    const object: StoredObject = { key, revision, resourceVersion, body: mutation.body };
    return { kind: 'put', key, revision, object, created: replaced === 0, previous: readPrevious };
  }

  #outcomeOf(change: Change): Outcome {
    const object = change.kind === 'put' ? change.object : change.previous();
    assert(object !== undefined, 'what was just replaced is still there');
    return { kind: 'written', revision: change.revision, resourceVersion: this.format(change.revision), object };
  }

  #answerFailed(code: string, message: string): void {
    this.#parts.log.error('store.commit-failed', { code, message, mutations: this.#inFlight.length });
    this.#lastFailure = message;
    this.#scheduleProbe();
    const refusal = { reason: 'ServiceUnavailable', message: `the store cannot write (${code})` } as const;
    for (const { answer } of this.#inFlight) answer({ kind: 'unavailable', refusal });
    this.#inFlight = [];
  }

  #heal(): void {
    if (this.#lastFailure === undefined) return;
    this.#lastFailure = undefined;
    this.#cancelProbe();
    this.#parts.log.info('store.writes-again');
  }

  #scheduleProbe(): void {
    this.#cancelProbe();
    if (!this.#closing) this.#cancelProbe = this.#parts.clock.after(probeIntervalMs, () => this.#post({ kind: 'probe' }));
  }

  #goOn(): void {
    this.#queue.settled();
    if (!this.#queue.pump() && this.#closing) this.#post({ kind: 'close' });
  }

  #scheduleCompaction(delayMs: number): void {
    if (this.#closing) return;
    this.#cancelCompaction = this.#parts.clock.after(delayMs, () => this.#compact());
  }

  #compact(): void {
    const nowMs = this.#parts.clock.now();
    const { history } = this.#limits;
    const agedBefore = (ageMs: number): Revision => this.#statements.reachedBefore.get(nowMs - ageMs) ?? 0;
    const upTo = nextCompacted(
      {
        published: this.#published,
        compacted: this.#compacted,
        bytes: this.#logBytes,
        agedRevision: agedBefore(history.historyAgeMs),
        heldRevision: this.#holds.lowest(nowMs),
      },
      history,
    );
    const tombstonesUpTo = Math.min(upTo, agedBefore(history.tombstoneAgeMs));
    if (this.#isCompacted && upTo === this.#compacted && tombstonesUpTo <= this.#changeLog.rememberedFrom) return this.#scheduleCompaction(compactIntervalMs);
    this.#compacted = upTo;
    this.#isCompacted = false;
    this.#post({
      kind: 'compact',
      upTo,
      tombstonesUpTo,
      tombstonesMax: history.tombstonesMax,
      rowsMax: compactionRowsMax,
    });
  }

  #cancelTasks(): void {
    this.#cancelCompaction();
    this.#cancelProbe();
  }

  #fail(error: Error): void {
    if (this.#closing && this.#inFlight.length === 0) return this.#finish();
    const refusal = { reason: 'ServiceUnavailable', message: 'the store has failed' } as const;
    for (const { answer } of this.#inFlight) answer({ kind: 'unavailable', refusal });
    this.#queue.refuseAll(refusal);
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

function enter(files: { databaseFile: string; witnessFile: string }, migrations: string, random: () => number): Life {
  const database = openWriter(files.databaseFile);
  try {
    migrate(database, migrations);
    const nonce = Array.from({ length: 16 }, () => Math.floor(random() * 16).toString(16)).join('');
    return begin(database, readWitness(files.witnessFile), nonce, random);
  } finally {
    database.close();
  }
}

async function startCommitter(options: CommitterOptions): Promise<Worker> {
  const worker = new Worker(new URL('./committer-worker.js', import.meta.url), { workerData: options });
  const started = deferred<void>();
  worker.once('message', () => started.resolve());
  worker.once('error', (error) => started.reject(error));
  await started.promise;
  return worker;
}

function prepare(database: Connection) {
  return {
    current: database
      .prepare<[number, string, string, string, string], Revision>(
        /*sql*/ `SELECT revision FROM objects WHERE resource = ? AND shard = ? AND cluster = ? AND namespace = ? AND name = ?`,
      )
      .pluck(),
    shardsWith: database
      .prepare<[string, number, string, string], string>(
        /*sql*/ `SELECT shard FROM objects INDEXED BY objects_by_cluster WHERE cluster = ? AND resource = ? AND namespace = ? AND name = ? ORDER BY shard`,
      )
      .pluck(),
    clustersAt: database
      .prepare<[string], string>(/*sql*/ `SELECT DISTINCT cluster FROM paths INDEXED BY paths_by_path WHERE path = ? ORDER BY cluster`)
      .pluck(),
    reachedBefore: database
      .prepare<[number], Revision>(/*sql*/ `SELECT revision FROM moments WHERE at_ms <= ? ORDER BY revision DESC LIMIT 1`)
      .pluck(),
    resources: database.prepare<[], { group: string; resource: string; identity: string }>(
      /*sql*/ `SELECT api_group AS "group", resource, identity FROM resources AS r
               WHERE EXISTS (SELECT 1 FROM objects WHERE resource = r.id) ORDER BY id`,
    ),
  };
}
