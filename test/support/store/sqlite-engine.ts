/**
 * The SQLite store as tests drive it: a directory of its own, a clock that the test moves, and
 * compaction when the test asks for it. It survives `restart`; `Bounds` is what a test may narrow.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../../../src/diagnostics/log.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js';
import type { SqliteStore } from '../../../src/store/sqlite/store.js';
import type { StoreLimits } from '../../../src/store/sqlite/store-options.js';
import { startCommitterHere } from '../committer-here.js';
import { copyDatabase } from '../made-before.js';
import { projectFile } from '../project.js';
import { silent, storeLimits } from '../test-store.js';
import { ManualClock } from './manual-clock.js';

/** Longer than compaction ever waits for its next step. */
const compactIntervalMs = 10_000;

export type Bounds = Readonly<{
  history?: Partial<StoreLimits['history']>;
  queue?: Partial<StoreLimits['queue']>;
  snapshot?: Partial<StoreLimits['snapshot']>;
  snapshotHoldMs?: number;
  recentBytesMax?: number;
  startCheckBytesMax?: number;
  keptNames?: StoreLimits['keptNames'];
}>;

/** `directory` is used as it is; in an empty one the store makes its database. */
export type Surroundings = Readonly<{ clock?: ManualClock; random?: () => number; log?: Log; directory?: string }>;

export class SqliteEngine {
  readonly traits = { ordersWrites: true, keepsTombstones: true, keepsTimes: true, keepsPaths: true };
  readonly directory: string;
  readonly clock: ManualClock;
  store!: SqliteStore;
  readonly #bounds: Bounds;
  readonly #random: () => number;
  readonly #log: Log;
  #stepped = deferred<void>();

  private constructor(bounds: Bounds, { clock = new ManualClock(), random = Math.random, log = silent, directory }: Surroundings) {
    this.directory = directory ?? mkdtempSync(join(tmpdir(), 'strata-store-'));
    if (directory === undefined) copyDatabase(this.directory);
    this.clock = clock;
    this.#bounds = bounds;
    this.#random = random;
    this.#log = log;
  }

  static async start(
    t: { teardown: (run: () => unknown) => void },
    bounds: Bounds = {},
    surroundings: Surroundings = {},
  ): Promise<SqliteEngine> {
    const engine = new SqliteEngine(bounds, surroundings);
    t.teardown(async () => {
      await engine.store?.close();
      rmSync(engine.directory, { recursive: true, force: true });
    });
    await engine.open();
    return engine;
  }

  file(name: 'strata.db' | 'strata.db-wal' | 'strata.lock'): string {
    return join(this.directory, name);
  }

  async open(): Promise<SqliteStore> {
    // Without a cache of recent objects, so that a test reads what the disk has.
    const { history, queue, snapshot, snapshotHoldMs = storeLimits.snapshotHoldMs, recentBytesMax = 0 } = this.#bounds;
    const { startCheckBytesMax = storeLimits.startCheckBytesMax, keptNames = storeLimits.keptNames } = this.#bounds;
    const limits: StoreLimits = {
      history: { ...storeLimits.history, ...history },
      queue: { ...storeLimits.queue, ...queue },
      snapshot: { ...storeLimits.snapshot, ...snapshot },
      snapshotHoldMs,
      recentBytesMax,
      startCheckBytesMax,
      keptNames,
    };
    const observe = {
      committed: () => {},
      compacted: () => {
        this.#stepped.resolve();
        this.#stepped = deferred<void>();
      },
    };
    const parts = { log: this.#log, clock: this.clock, random: this.#random, observe };
    this.store = await openSqlite(this.directory, projectFile('migrations'), limits, parts, startCommitterHere);
    return this.store;
  }

  async restart(): Promise<SqliteStore> {
    await this.store.close();
    return this.open();
  }

  /** Lets the store compact until it finds nothing more to do. */
  async compact(): Promise<void> {
    for (;;) {
      // A store that found something to do waits for the committer before it sets its next timer.
      while (this.clock.pending === 0) await this.#stepped.promise;
      this.clock.advance(compactIntervalMs);
      if (this.clock.pending > 0) return;
    }
  }
}
