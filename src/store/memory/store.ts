/**
 * An engine behind the Store port, in memory, for trees of many caches on virtual time: no thread, no file, no timer of its own, and
 * the same in every run. Bodies are shared by reference.
 *
 *   submit ─▶ MutationQueue ─soon─▶ batch ──commitMs──▶ decided, on the disk, published and answered, in one tick
 *   push ───▶ (lanes)                       │
 *                                         crash: the batch is lost, or on the disk and nobody was answered
 *
 * M1 What was answered is on the disk. M2 A store that has crashed answers neither writers nor readers, because its process
 * is gone. Bounds are those of the queue; the log is as long as `compact` leaves it.
 */
import assert from 'node:assert/strict';
import type { Change, Commit } from '../../domain/change.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import { deferred } from '../../domain/deferred.js';
import { digestOf } from '../../domain/digest.js';
import { expired, Refused, type Refusal } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { Mutation, Outcome } from '../../domain/mutation.js';
import type { StoredObject } from '../../domain/object.js';
import type { Subscription } from '../../domain/ports.js';
import type { LogChunk, LogType, Touch, Pushes, PushLane, Snapshot, Store } from '../../domain/store-port.js';
import { halfRemoved, type LinkState, type SliceState } from '../../domain/push.js';
import type { ShardState } from '../../domain/claim.js';
import type { Resource } from '../../domain/resource.js';
import type { Located, Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { ShardName } from '../../domain/shard.js';
import { decideCompaction, Holds, type LogState } from '../compactor.js';
import { alone } from '../alone.js';
import { Epochs } from '../epochs.js';
import { askedOf, type Part } from '../lane.js';
import { MutationQueue } from '../mutation-queue.js';
import { MemoryCommitter, type MemoryCommitted } from './committer.js';
import type { MemoryDisk } from './disk.js';
import type { ClusterPlace } from './paths.js';
import { MemoryReader } from './reader.js';
import { MemorySnapshot } from './snapshot.js';
import { memoryStoreOptions, type MemoryStoreOptions, type MemoryStoreParts } from './store-options.js';

const closing: Refusal = { reason: 'ServiceUnavailable', message: 'the server is shutting down' };
const diskFull: Refusal = { reason: 'ServiceUnavailable', message: 'the store cannot write (full)' };

type FollowListener = Parameters<Pushes['follow']>[0];

export class MemoryStore implements Store {
  readonly peers = alone;
  readonly unreadableKeys = 0;
  /** While this is set, the disk refuses every commit. */
  isDiskFull = false;
  readonly #disk: MemoryDisk;
  readonly #parts: MemoryStoreParts;
  readonly #options: MemoryStoreOptions;
  readonly #epochs: Epochs;
  readonly #reader: MemoryReader;
  readonly #committer: MemoryCommitter;
  readonly #queue: MutationQueue;
  readonly #holds: Holds;
  readonly #listeners = new Set<(commit: Commit) => void>();
  readonly #followers = new Set<FollowListener>();
  readonly #closed = deferred<void>();
  #inFlight: readonly Part[] = [];
  #state: 'open' | 'closing' | 'crashed' = 'open';

  constructor(disk: MemoryDisk, parts: MemoryStoreParts, options: Partial<MemoryStoreOptions> = {}) {
    this.#disk = disk;
    this.#parts = parts;
    this.#options = { ...memoryStoreOptions, ...options };
    disk.beginEpoch({ nowMs: parts.clock.now(), random: parts.random });
    this.#epochs = new Epochs(disk.epochs);
    this.#reader = new MemoryReader(disk, (revision) => this.format(revision));
    this.#committer = new MemoryCommitter(disk, parts.digestOf ?? digestOf, this.#options.keptNames);
    this.#queue = new MutationQueue(this.#options.queue, {
      send: (batch) => this.#send(batch),
      soon: parts.soon,
      objectsOf: (slice) => disk.slices.of(slice)?.objects.size ?? 0,
    });
    this.#holds = new Holds(this.#options.snapshotHoldMs);
    this.#finishRemovals();
  }

  get cacheId(): string {
    return this.#disk.cacheId;
  }

  get epoch(): number {
    return this.#disk.epochs.at(-1)?.epoch ?? 0;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Never: a process that crashes tells nobody. */
  get failed(): Promise<Error> {
    return deferred<Error>().promise;
  }

  get lastFailure(): string | undefined {
    return this.isDiskFull ? diskFull.message : undefined;
  }

  get waiting(): Readonly<{ mutations: number; bytes: number }> {
    return { mutations: this.#queue.length, bytes: this.#queue.bytes };
  }

  get logged(): Readonly<{ changes: number; bytes: number }> {
    return { changes: this.published - this.compacted, bytes: 0 };
  }

  fileBytes(): ReadonlyMap<string, number> {
    return new Map();
  }

  get published(): Revision {
    return this.#disk.log.revision;
  }

  get compacted(): Revision {
    return this.#disk.log.compacted;
  }

  format(revision: Revision): string {
    return this.#epochs.format(revision);
  }

  locate(text: string): Located {
    return this.#epochs.locate(text, this.published);
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

  shards(): Promise<readonly ShardState[]> {
    return this.#answer(() => [...this.#disk.shards.values()]);
  }

  slices(): Promise<readonly SliceState[]> {
    return this.#answer(() => this.#disk.slices.states());
  }

  links(): Promise<readonly LinkState[]> {
    return this.#answer(() => [...this.#disk.links.values()]);
  }

  follow(listener: FollowListener): Subscription {
    this.#followers.add(listener);
    return { cancel: () => this.#followers.delete(listener) };
  }

  subscribe(listener: (commit: Commit) => void): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  get(key: Key): Promise<StoredObject | undefined> {
    return this.#answer(() => this.#reader.get(key));
  }

  find(scope: Scope): Promise<readonly StoredObject[]> {
    return this.#answer(() => this.#reader.find(scope));
  }

  async shardsWith({ resource, ...place }: Omit<Key, 'shard'>): Promise<readonly ShardName[]> {
    return (await this.find({ ...resource, ...place, shard: '*' })).map(({ key }) => key.shard);
  }

  snapshot(scope: Scope, revision: Revision): Snapshot {
    assert(revision <= this.published, 'the snapshot is of a future revision');
    this.#assertCovered(revision);
    const release = this.#holds.hold(revision, this.#parts.clock.now());
    const covered = (position: Revision): Promise<void> | undefined => this.#covered(position);
    return new MemorySnapshot(scope, revision, { reader: this.#reader, covered, release }, this.#options.page);
  }

  count(scope: Scope, after: Key | undefined, max: number): Promise<number | undefined> {
    return this.#answer(() => this.#reader.count(scope, after, max));
  }

  changes(type: LogType, range: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): Promise<LogChunk> {
    const isOfType = (key: Key): boolean => matches({ ...type, shard: '*', cluster: '*' }, key) && isWanted(key);
    return this.#reader.chunk(range, (position) => this.#covered(position), isOfType);
  }

  async *everyChange({ after, upTo }: { after: Revision; upTo: Revision }, isWanted: (key: Key) => boolean): AsyncGenerator<LogChunk> {
    for (let position = after; position < upTo;) {
      const chunk = await this.#reader.chunk({ after: position, upTo }, (at) => this.#covered(at));
      yield { ...chunk, changes: chunk.changes.filter(({ key, movedPath }) => isWanted(key) || movedPath !== undefined) };
      position = chunk.upTo;
    }
  }

  /** Each change has a revision of its own. */
  hasSeveral(): boolean {
    return false;
  }

  remembers(after: Revision): boolean {
    return after >= this.#disk.log.rememberedFrom;
  }

  touched(scope: Scope, range: { after: Revision; upTo: Revision }): AsyncIterable<readonly Touch[]> {
    return this.#reader.touched(scope, range, (position) => this.#covered(position));
  }

  clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#answer(() => this.#disk.paths.clustersAt(path));
  }

  ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#answer(() => this.#disk.paths.ownersOf(path));
  }

  async pathsOf(places: readonly ClusterPlace[], at?: Revision): Promise<readonly (CanonicalPath | undefined)[]> {
    const { log, paths } = this.#disk;
    const pathOf = (place: ClusterPlace): CanonicalPath | undefined => {
      const move = at === undefined ? undefined : log.moveAfter(at, place);
      return move === undefined ? paths.pathOf(place) : move.before;
    };
    if (at !== undefined) await this.#covered(at);
    return this.#answer(() => places.map(pathOf));
  }

  resources(): Promise<readonly Resource[]> {
    return this.#answer(() => this.#reader.resources());
  }

  /** Drops what nobody can read once history begins there: as far as open snapshots and the bounds of a store allow. */
  compact(upTo?: Revision): void {
    const { historyChangesMax, tombstonesMax } = this.#options;
    const heldRevision = this.#holds.lowest(this.#parts.clock.now());
    const { published, compacted } = this;
    const state: LogState = { published, compacted, bytes: 0, agedRevision: upTo ?? 0, overdueMs: 0, heldRevision };
    const limits = { historyAgeMs: Infinity, historyChangesMax, historyBytesMax: Infinity, tombstoneAgeMs: Infinity, tombstonesMax };
    this.#disk.log.compact(decideCompaction(state, limits).upTo, tombstonesMax);
  }

  beginClose(): void {
    this.#queue.endSweeps(closing);
  }

  close(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'closing';
      this.#queue.close(closing);
      this.#finishClose();
    }
    return this.#closed.promise;
  }

  /** The process dies. Its disk remains; a commit under way may have got there or not. */
  crash(underWay: 'lost' | 'kept' = 'lost'): MemoryDisk {
    if (this.#state !== 'crashed' && underWay === 'kept' && !this.isDiskFull) this.#decide(this.#inFlight);
    this.#state = 'crashed';
    return this.#disk;
  }

  /** A copy of the disk as it is now, to be restored later. */
  backup(): MemoryDisk {
    return this.#disk.copy();
  }

  #assertCovered(position: Revision): void {
    if (position >= this.compacted) return;
    throw new Refused(expired(`too old resource version: ${this.format(position)} (${this.format(this.compacted)})`));
  }

  #covered(position: Revision): Promise<void> | undefined {
    if (this.#state === 'crashed') return deferred<void>().promise;
    this.#assertCovered(position);
    return undefined;
  }

  async #answer<T>(read: () => T): Promise<T> {
    return this.#state === 'crashed' ? deferred<T>().promise : read();
  }

  #send(batch: readonly Part[]): void {
    this.#inFlight = batch;
    const { clock, soon } = this.#parts;
    const { commitMs } = this.#options;
    if (commitMs === 0) soon(() => this.#commit());
    else clock.after(commitMs, () => this.#commit());
  }

  #commit(): void {
    if (this.#state === 'crashed') return;
    const batch = this.#inFlight;
    this.#inFlight = [];
    if (this.isDiskFull) {
      this.#committer.forget();
      this.#queue.refuseBatch(batch, diskFull);
    } else {
      const { committed, answers } = this.#decide(batch);
      this.#publish(committed);
      for (const answer of answers) answer();
      if (this.published - this.compacted > this.#options.historyChangesMax) this.compact();
    }
    this.#queue.settled();
    if (!this.#queue.pump()) this.#finishClose();
  }

  #decide(batch: readonly Part[]): { committed: MemoryCommitted; answers: readonly (() => void)[] } {
    const answers: (() => void)[] = [];
    const committed = this.#committer.commit(
      { nowMs: this.#parts.clock.now(), asked: batch.flatMap(askedOf).length },
      ({ mutate, push }) => {
        for (const part of batch) {
          if (part.kind === 'mutation') {
            const decided = mutate(part.mutation);
            answers.push(() => part.answer(decided.kind === 'written' ? this.#written(this.#reader.change(decided.row)) : decided));
          } else {
            const decided = part.asked.map(push);
            answers.push(() => this.#queue.settlePushes(part, decided));
          }
        }
      },
    );
    return { committed, answers };
  }

  #publish({ rows, movedPaths, swept, shards, slices }: MemoryCommitted): void {
    if (shards.length + slices.length > 0) for (const follower of this.#followers) follower({ shards, slices });
    if (rows.length === 0) return;
    const commit: Commit = { revision: this.published, changes: rows.map((row) => this.#reader.change(row)), movedPaths, swept };
    for (const listener of this.#listeners) listener(commit);
  }

  #written(change: Change): Outcome {
    const object = change.kind === 'put' ? change.object : change.previous();
    assert(object !== undefined, 'the row that was just replaced must still exist');
    return { kind: 'written', revision: change.revision, resourceVersion: this.format(change.revision), object };
  }

  /** Removals that the previous process left undone, by name. */
  #finishRemovals(): void {
    const names = halfRemoved(this.#disk.shards.values(), this.#disk.slices.states());
    if (names.length > 0) void this.#queue.lane().push(names.map((shard) => ({ kind: 'clear', shard, fence: false, nowMs: 0 })));
  }

  #finishClose(): void {
    if (this.#state === 'closing' && this.#queue.idle) this.#closed.resolve();
  }
}
