/**
 * Opens the SQLite engine: the lock, the files of the directory (enter-store.ts), the committer's
 * thread, then the store.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { deferred } from '../../domain/base/promises.js';
import type { CommitterOptions, CommitterThread, StartCommitter } from './committer-messages.js';
import { isDamage } from './damage.js';
import { openReader, type Connection } from './database.js';
import { enterStore } from './enter-store.js';
import { lockStore } from './lock.js';
import { momentInterval } from './moments.js';
import { restrictPermissions } from './private-files.js';
import { SqliteStore } from './store.js';
import { databaseName } from './store-files.js';
import type { StoreParts } from '../store-options.js';
import type { StoreLimits } from './store-options.js';

/** Throws CacheError. */
export async function openSqlite(
  directory: string,
  migrations: string,
  limits: StoreLimits,
  parts: StoreParts,
  startCommitter: StartCommitter = startCommitterThread,
): Promise<SqliteStore> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = lockStore(directory);
  try {
    const databaseFile = join(directory, databaseName);
    restrictPermissions(directory, parts);
    const { startCheckBytesMax, history, keptNames } = limits;
    const life = await enterStore(directory, migrations, { ...parts, nowMs: parts.clock.wallMs(), startCheckBytesMax });
    const momentIntervalMs = momentInterval(history.historyAgeMs, history.tombstoneAgeMs);
    const worker = await startCommitter({ databaseFile, momentIntervalMs, keptNames });
    const reader = openGuardedReader(databaseFile, (error) => store.damaged(error));
    const store = new SqliteStore({ lock, life, worker, reader }, limits, parts);
    return store;
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startCommitterThread(options: CommitterOptions): Promise<CommitterThread> {
  const worker = new Worker(new URL('./committer-worker.js', import.meta.url), { workerData: options });
  const started = deferred<void>();
  worker.once('message', () => started.resolve());
  worker.once('error', (error) => started.reject(error));
  await started.promise;
  return worker;
}

type Read = (...parameters: unknown[]) => unknown;

/**
 * A read-only connection. A read that meets damage calls `damaged` and throws. The store then fails
 * and serves nothing more. The next start checks the database, because the store did not close it.
 */
function openGuardedReader(file: string, damaged: (error: Error) => void): Connection {
  const reader = openReader(file);
  const prepare = reader.prepare.bind(reader);
  const guarded =
    (read: Read): Read =>
    (...parameters) => {
      try {
        return read(...parameters);
      } catch (error) {
        if (isDamage(error)) damaged(error);
        throw error;
      }
    };
  const prepareGuarded = (sql: string): unknown => {
    const statement = prepare(sql);
    const { get, all } = statement;
    return Object.assign(statement, { get: guarded(get.bind(statement) as Read), all: guarded(all.bind(statement) as Read) });
  };
  return Object.assign(reader, { prepare: prepareGuarded as Connection['prepare'] });
}
