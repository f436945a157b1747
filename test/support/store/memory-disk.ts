/**
 * The SQLite engine on a disk in memory, in the thread and the time of a test: for trees of many
 * caches on virtual time. The store, its committer and its SQL are those of a server; a server's
 * committer thread, files and timers are not here.
 *
 *   submit, push ─▶ MutationQueue ─soon─▶ batch ──commitMs──▶ committed, published, answered,
 *                                           │                in one tick
 *                                         crash: the batch is lost, or on the disk, unanswered
 *
 *   blank ─▶ store ─crash─▶ the same disk ─▶ store      a process that dies
 *                 └─copy──▶ older disk ─▶ store         a backup that is restored
 *                              blank ─▶ store           a disk that was lost: another cache
 *
 * It cannot show damage, problems of files, or a commit that is durable and not yet published.
 * Compaction runs only after a commit that exceeds a bound, and when a test asks for it; never by
 * time.
 */
import { EventEmitter } from 'node:events';
import type { Clock } from '../../../src/domain/ports.js';
import type { Neighbour } from '../../../src/domain/via.js';
import { newCacheId } from '../../../src/store/epochs.js';
import { AnsweringCommitter } from '../../../src/store/sqlite/answering-committer.js';
import type { CommitterThread, FromCommitter, ToCommitter } from '../../../src/store/sqlite/committer-messages.js';
import { openWriter, type Connection } from '../../../src/store/sqlite/database.js';
import { Database } from '../../../src/store/sqlite/driver.js';
import { begin, readCacheId } from '../../../src/store/sqlite/life.js';
import { readLinks } from '../../../src/store/sqlite/link-table.js';
import { migrate, ownMigrations } from '../../../src/store/sqlite/migrate.js';
import type { StoreLimits } from '../../../src/store/sqlite/store-options.js';
import { SqliteStore } from '../../../src/store/sqlite/store.js';
import { silent, storeLimits } from '../test-store.js';

export type MemoryStoreParts = Readonly<{
  clock: Clock;
  /** Runs a task after everything that this turn still does. */
  soon: (task: () => void) => void;
  /** Returns a number in [0, 1). */
  random: () => number;
}>;

/** `commitMs`: how long a commit takes; 0: until the next turn. */
export type MemoryStoreOptions = Readonly<{ commitMs: number } & StoreLimits>;

const inMemory = ':memory:';

export class MemoryDisk {
  readonly connection: Connection;

  private constructor(connection: Connection) {
    this.connection = connection;
  }

  /** An empty disk of a new cache. `random` returns a number in [0, 1). */
  static blank(random: () => number): MemoryDisk {
    const disk = new MemoryDisk(new Database((empty ??= emptyDatabase())));
    disk.connection.prepare(/*sql*/ `INSERT INTO meta (name, value) VALUES ('cache_id', ?)`).run(newCacheId(random));
    return disk;
  }

  get cacheId(): string {
    return readCacheId(this.connection);
  }

  /** Whether the store on this disk has met that neighbour, and it has not left. */
  remembers(neighbour: Neighbour): boolean {
    return readLinks(this.connection).some((link) => link.neighbour === neighbour);
  }

  /** A copy of the present disk, to be restored later. */
  copy(): MemoryDisk {
    return new MemoryDisk(new Database(this.connection.serialize()));
  }

  /** Opens the store; a disk has one open store at a time. */
  open(parts: MemoryStoreParts, options: Partial<MemoryStoreOptions> = {}): MemoryStore {
    return new MemoryStore(this, parts, { commitMs: 0, ...storeLimits, ...options });
  }
}

export class MemoryStore extends SqliteStore {
  readonly #disk: MemoryDisk;
  readonly #committer: CommitterInMemory;
  readonly #timers: Timers;
  readonly #changesMax: number;
  /** The bounds of the history, which the store reads whenever it decides on compaction. */
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

  /** While this is true, the disk refuses every commit. */
  set isDiskFull(isFull: boolean) {
    this.#disk.connection.pragma(`query_only = ${isFull ? 1 : 0}`);
  }

  /** Kills the process. Its disk remains; a commit under way is lost or kept. */
  crash(underWay: 'lost' | 'kept' = 'lost'): MemoryDisk {
    this.#committer.crash(underWay);
    return this.#disk;
  }

  /** A copy of the present disk, to be restored later. */
  backup(): MemoryDisk {
    return this.#disk.copy();
  }

  /**
   * Compacts the log as if `changesMax` were its bound. A bound of 0 applies even while snapshots
   * are open.
   */
  compact(changesMax = 0): void {
    this.#history.historyChangesMax = changesMax;
    this.#timers.fire();
    this.#history.historyChangesMax = this.#changesMax;
  }
}

/** Does to a store what the committer's thread does. */
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

  /**
   * The disk outlives the store, so `close` does not close it. A compaction step has no time limit,
   * because no real time counts here.
   */
  #answer(message: ToCommitter): FromCommitter {
    if (message.kind === 'close') return { kind: 'closed' };
    const answer = this.#committer.answer(message.kind === 'compact' ? { ...message, budgetMs: Infinity } : message);
    return 'elapsedMs' in answer ? { ...answer, elapsedMs: 0 } : answer;
  }
}

/** A clock whose timers fire only when a test says so. */
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

/** The store's readers use the committer's connection. Closing it closes only this view of it. */
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
