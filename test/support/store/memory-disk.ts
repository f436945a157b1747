/**
 * The SQLite engine on a disk in memory, in the thread and the time of a test: for trees of many caches on virtual time. The store, its committer and its
 * SQL are those of a server; what a server has beside them, a thread, files and timers, is not here.
 *
 *   submit, push ─▶ MutationQueue ─soon─▶ batch ──commitMs──▶ committed, published and answered, in one tick
 *                                           │
 *                                         crash: the batch is lost, or on the disk and nobody was answered
 *
 *   blank ─▶ store ─crash─▶ the same disk ─▶ store      a process that dies
 *                 └─copy──▶ older disk ─▶ store         a backup that is restored
 *                              blank ─▶ store           a disk that was lost: another cache
 *
 * What it hides: a commit that is durable and not yet published, damage, and files. Nothing is compacted by time, only after a commit that goes over a bound,
 * and when a test says so.
 */
import { EventEmitter } from 'node:events';
import type { Clock } from '../../../src/domain/ports.js';
import type { Neighbour } from '../../../src/domain/via.js';
import { newCacheId } from '../../../src/store/epochs.js';
import { AnsweringCommitter } from '../../../src/store/sqlite/answering-committer.js';
import type { CommitterThread, FromCommitter, ToCommitter } from '../../../src/store/sqlite/committer-messages.js';
import { openWriter, type Connection } from '../../../src/store/sqlite/database.js';
import { Database } from '../../../src/store/sqlite/driver.js';
import { begin } from '../../../src/store/sqlite/life.js';
import { readLinks } from '../../../src/store/sqlite/link-table.js';
import { readCacheId } from '../../../src/store/sqlite/meta.js';
import { migrate, ownMigrations } from '../../../src/store/sqlite/migrate.js';
import type { StoreLimits } from '../../../src/store/sqlite/store-options.js';
import { SqliteStore } from '../../../src/store/sqlite/store.js';
import { silent, storeLimits } from '../test-store.js';

export type MemoryStoreParts = Readonly<{
  clock: Clock;
  /** Runs a task after everything this turn still brings. */
  soon: (task: () => void) => void;
  /** Gives [0, 1). */
  random: () => number;
}>;

/** `commitMs`: how long the disk takes for a commit; 0: until the next turn. */
export type MemoryStoreOptions = Readonly<{ commitMs: number } & StoreLimits>;

/** In memory, as SQLite takes it for a name. */
const inMemory = ':memory:';

export class MemoryDisk {
  readonly connection: Connection;

  private constructor(connection: Connection) {
    this.connection = connection;
  }

  /** An empty disk of a new cache. `random` gives [0, 1). */
  static blank(random: () => number): MemoryDisk {
    const disk = new MemoryDisk(new Database((empty ??= emptyDatabase())));
    disk.connection.prepare(/*sql*/ `INSERT INTO meta (name, value) VALUES ('cache_id', ?)`).run(newCacheId(random));
    return disk;
  }

  get cacheId(): string {
    return readCacheId(this.connection);
  }

  /** Whether the store on it has ever met that neighbour, and it has not left. */
  remembers(neighbour: Neighbour): boolean {
    return readLinks(this.connection).some((link) => link.neighbour === neighbour);
  }

  /** As it is now, to be restored later. */
  copy(): MemoryDisk {
    return new MemoryDisk(new Database(this.connection.serialize()));
  }

  /** One store at a time is open on it. */
  open(parts: MemoryStoreParts, options: Partial<MemoryStoreOptions> = {}): MemoryStore {
    return new MemoryStore(this, parts, { commitMs: 0, ...storeLimits, ...options });
  }
}

/** A store that can crash. */
export class MemoryStore extends SqliteStore {
  readonly #disk: MemoryDisk;
  readonly #committer: CommitterInMemory;
  readonly #timers: Timers;
  readonly #changesMax: number;
  /** What the store reads whenever it decides on compaction. */
  readonly #history: { historyChangesMax: number };

  constructor(disk: MemoryDisk, { clock, soon, random }: MemoryStoreParts, { commitMs, ...limits }: MemoryStoreOptions) {
    const timers = new Timers(clock);
    const history = { ...limits.history };
    const life = begin(disk.connection, { nowMs: clock.wallMs(), random });
    const committer = new CommitterInMemory(
      new AnsweringCommitter(disk.connection, { databaseFile: inMemory, momentIntervalMs: Infinity, keptNames: limits.keptNames }),
      commitMs === 0 ? soon : (task) => void clock.after(commitMs, task),
    );
    super(
      {
        lock: { release: () => {} },
        life,
        worker: committer as unknown as CommitterThread,
        reader: sharedConnection(disk.connection),
        soon,
      },
      { ...limits, history },
      { log: silent, clock: timers, random, observe: { committed: () => {}, compacted: () => {} } },
    );
    this.#disk = disk;
    this.#committer = committer;
    this.#timers = timers;
    this.#history = history;
    this.#changesMax = history.historyChangesMax;
  }

  /** While this is set, the disk refuses every commit. */
  set isDiskFull(isFull: boolean) {
    this.#disk.connection.pragma(`query_only = ${isFull ? 1 : 0}`);
  }

  /** The process dies. Its disk remains; a commit under way may have got there or not. */
  crash(underWay: 'lost' | 'kept' = 'lost'): MemoryDisk {
    this.#committer.crash(underWay);
    return this.#disk;
  }

  /** A copy of the disk as it is now, to be restored later. */
  backup(): MemoryDisk {
    return this.#disk.copy();
  }

  /** Makes the log as short as if that were its bound. A bound of 0 holds for snapshots in progress as well. */
  compact(changesMax = 0): void {
    this.#history.historyChangesMax = changesMax;
    this.#timers.fire();
    this.#history.historyChangesMax = this.#changesMax;
  }
}

/** The committer's thread, as far as a store sees it. */
class CommitterInMemory extends EventEmitter {
  readonly #committer: AnsweringCommitter;
  readonly #later: (task: () => void) => void;
  readonly #underWay = new Set<ToCommitter>();
  #isOver = false;

  constructor(committer: AnsweringCommitter, later: (task: () => void) => void) {
    super();
    this.#committer = committer;
    this.#later = later;
  }

  postMessage(message: ToCommitter): void {
    this.#underWay.add(message);
    this.#later(() => {
      if (this.#isOver) return;
      this.#underWay.delete(message);
      this.emit('message', this.#answer(message));
    });
  }

  async terminate(): Promise<number> {
    throw new Error('the store is damaged');
  }

  crash(underWay: 'lost' | 'kept'): void {
    this.#isOver = true;
    if (underWay === 'kept') for (const message of this.#underWay) this.#answer(message);
    this.#underWay.clear();
  }

  /** The disk outlives the store, so it is not closed. A step of compaction does all there is to do, however long it takes: no real time counts here. */
  #answer(message: ToCommitter): FromCommitter {
    if (message.kind === 'close') return { kind: 'closed' };
    const answer = this.#committer.answer(message.kind === 'compact' ? { ...message, budgetMs: Infinity } : message);
    return 'elapsedMs' in answer ? { ...answer, elapsedMs: 0 } : answer;
  }
}

/** The clock of a process of which no timer fires by itself. */
class Timers implements Clock {
  readonly #clock: Clock;
  readonly #tasks = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  after(_delayMs: number, run: () => void): () => void {
    const task = (): void => run();
    this.#tasks.add(task);
    return () => this.#tasks.delete(task);
  }

  fire(): void {
    const tasks = [...this.#tasks];
    this.#tasks.clear();
    for (const task of tasks) task();
  }
}

/** Its readers read what its committer writes; whoever closes it closes it for itself alone. */
function sharedConnection(connection: Connection): Connection {
  let isOpen = true;
  return Object.create(connection, { open: { get: () => isOpen }, close: { value: () => (isOpen = false) } }) as Connection;
}

let empty: Buffer | undefined;

function emptyDatabase(): Buffer {
  const connection = openWriter(inMemory);
  migrate(connection, ownMigrations);
  return connection.serialize();
}
