/** Opens the SQLite engine: lock, migrations, the store's life so far, the committer's thread, then the store. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { deferred } from '../../domain/deferred.js';
import type { CommitterOptions } from './committer-messages.js';
import { openReader, openWriter } from './database.js';
import type { EpochParts } from './epochs.js';
import { begin, type Life } from './life.js';
import { acquireLock } from './lock.js';
import { migrate } from './migrate.js';
import { ensurePrivate, tighten } from './private-files.js';
import { SqliteStore } from './store.js';
import type { StoreLimits, StoreParts } from './store-options.js';

const momentIntervalMs = 60_000;

/** Opens or creates the store in `directory`. Throws a CacheError that says what is wrong. */
export async function openStore(directory: string, migrations: string, limits: StoreLimits, parts: StoreParts): Promise<SqliteStore> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lockFile = join(directory, 'strata.lock');
  ensurePrivate(lockFile);
  const lock = acquireLock(lockFile, directory);
  try {
    const databaseFile = join(directory, 'strata.db');
    tighten(directory, parts);
    ensurePrivate(databaseFile);
    const life = enter(databaseFile, migrations, { nowMs: parts.clock.now(), random: parts.random });
    const worker = await startCommitter({ databaseFile, momentIntervalMs });
    return new SqliteStore({ lock, life, worker, reader: openReader(databaseFile) }, limits, parts);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function enter(databaseFile: string, migrations: string, parts: EpochParts): Life {
  const database = openWriter(databaseFile);
  try {
    migrate(database, migrations);
    return begin(database, parts);
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
