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
import { Rows } from './rows.js';
import { SqliteSnapshot, Walks, type SnapshotLimits } from './snapshot.js';
import { readWitness } from './witness.js';

export type StoreLimits = Readonly<{ queue: QueueLimits; history: HistoryLimits; snapshot: SnapshotLimits; snapshotHoldMs: number }>;

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
    const worker = await startCommitter({ ...files, nonce: life.nonce, momentIntervalMs });
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
  #tombstonesFrom: Revision;
  #logBytes: number;
  #closing = false;
  #lastFailure: string | undefined;
  #cancelCompaction: () => void = () => {};

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
    this.#tombstonesFrom = life.tombstonesFrom;
    this.#logBytes = life.logBytes;
    this.#rows = new Rows(reader, (revision) => this.format(revision));
    this.#walks = new Walks(this.#rows);
    this.#changeLog = new ChangeLog(this.#rows, (revision) => this.format(revision));
    this.#holds = new Holds(limits.snapshotHoldMs);
    this.#statements = prepare(reader);
    this.#queue = new MutationQueue(limits.queue, (batch) => this.#send(batch));
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
    return this.#reader.transaction(() => this.#get(key))();
  }

  async find(scope: Scope): Promise<readonly StoredObject[]> {
    const { cluster, namespace, name } = scope;
    assert(cluster !== '*' && namespace !== undefined && name !== undefined, 'a place to find names cluster, namespace and name');
    return this.#reader.transaction(() => {
      const keys = this.#rows.resourceIds(scope).flatMap((id) =>
        this.#statements.shardsWith
          .all(cluster, id, namespace, name)
          .map((shard) => ({ resource: this.#rows.resource(id), shard, cluster, namespace, name }) as Key),
      );
      return keys.filter((key) => matches(scope, key)).flatMap((key) => this.#get(key) ?? []);
    })();
  }

  snapshot(scope: Scope, revision: Revision): Snapshot {
    assert(revision <= this.#published, 'a snapshot of the future');
    const release = this.#holds.hold(revision, this.#parts.clock.now());
    const assertCovered = (): void => this.#assertCovered(revision);
    assertCovered();
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
    return after >= this.#tombstonesFrom;
  }

  touched(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Key[]> {
    return this.#changeLog.touched(scope, range);
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
    this.#cancelCompaction();
    if (this.#queue.idle) this.#post({ kind: 'close' });
    await this.#closed.promise;
  }

  #get(key: Key): StoredObject | undefined {
    const [id] = this.#rows.resourceIds(key.resource);
    if (id === undefined) return undefined;
    const current = this.#statements.current.get(id, key.shard, key.cluster, key.namespace, key.name);
    const revision = current ?? this.#unpublishedDelete(id, key);
    if (revision === undefined) return undefined;
    const held = revision <= this.#published && current !== undefined ? revision : this.#rows.heldAt(revision, this.#published);
    return held === undefined ? undefined : this.#rows.object(held);
  }

  /** The delete of a key that is durable but not yet published, while its commit is on the way here. */
  #unpublishedDelete(resource: number, key: Key): Revision | undefined {
    return this.#walks
      .deletedSince(this.#published)
      .find((row) => row.resource === resource && row.shard === key.shard && row.cluster === key.cluster && row.namespace === key.namespace && row.name === key.name)
      ?.revision;
  }

  #assertCovered(position: Revision): void {
    if (position >= this.#compacted) return;
    throw new Refused(expired(`too old resource version: ${this.format(position)} (${this.format(this.#compacted)})`));
  }

  #send(batch: readonly Waiting[]): void {
    this.#inFlight = batch;
    this.#post({ kind: 'commit', mutations: batch.map(({ mutation }) => mutation), nowMs: this.#parts.clock.now() });
  }

  #post(message: ToCommitter): void {
    this.#worker.postMessage(message);
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
      case 'compacted':
        this.#tombstonesFrom = message.tombstonesFrom;
        this.#logBytes = message.logBytes;
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
    const commit: Commit = { revision: committed.revision, changes, movedPaths: committed.movedPaths };
    if (changes.length > 0) for (const listener of this.#listeners) listener(commit);
    outcomes.forEach((outcome, i) => batch[i]?.answer(outcome));
    this.#lastFailure = undefined;
    this.#parts.observe.committed({ written: changes.length, refused: batch.length + committed.restated.length - changes.length }, committed.elapsedMs);
  }

  #changeOf(mutation: Mutation, revision: Revision, replaced: Revision): Change {
    const { key } = mutation;
    const resourceVersion = this.format(revision);
    let previous: StoredObject | undefined | null = null;
    const readPrevious = (): StoredObject | undefined => (previous ??= this.#rows.object(replaced)) ?? undefined;
    if (mutation.kind === 'delete') return { kind: 'delete', key, revision, resourceVersion, previous: readPrevious };
    return { kind: 'put', key, revision, object: { key, revision, resourceVersion, body: mutation.body }, created: replaced === 0, previous: readPrevious };
  }

  #outcomeOf(change: Change): Outcome {
    const object = change.kind === 'put' ? change.object : change.previous();
    assert(object !== undefined, 'what was just replaced is still there');
    return { kind: 'written', revision: change.revision, resourceVersion: this.format(change.revision), object };
  }

  #answerFailed(code: string, message: string): void {
    this.#lastFailure = message;
    this.#parts.log.error('store.commit-failed', { code, message, mutations: this.#inFlight.length });
    const refusal = { reason: 'ServiceUnavailable', message: `the store cannot write (${code})` } as const;
    for (const { answer } of this.#inFlight) answer({ kind: 'unavailable', refusal });
    this.#inFlight = [];
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
    if (upTo === this.#compacted && tombstonesUpTo <= this.#tombstonesFrom) return this.#scheduleCompaction(compactIntervalMs);
    this.#compacted = upTo;
    this.#post({
      kind: 'compact',
      upTo,
      tombstonesUpTo,
      tombstonesMax: history.tombstonesMax,
      rowsMax: compactionRowsMax,
    });
  }

  #fail(error: Error): void {
    if (this.#closing && this.#inFlight.length === 0) return this.#finish();
    const refusal = { reason: 'ServiceUnavailable', message: 'the store has failed' } as const;
    for (const { answer } of this.#inFlight) answer({ kind: 'unavailable', refusal });
    this.#queue.refuseAll(refusal);
    this.#closing = true;
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
