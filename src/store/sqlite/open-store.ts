/** Opens the SQLite engine: lock, migrations, the store's life so far, the committer's thread, then the store. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { deferred } from '../../domain/deferred.js';
import type { CommitterOptions } from './committer-messages.js';
import { openReader, openWriter } from './database.js';
import { begin, randomDigits, type Life } from './life.js';
import { acquireLock } from './lock.js';
import { migrate } from './migrate.js';
import { momentInterval } from './moments.js';
import { ensurePrivate, tighten } from './private-files.js';
import { SqliteStore } from './store.js';
import type { StoreLimits, StoreParts } from './store-options.js';
import { readWitness } from './witness.js';

const nonceDigits = 16;

/** Opens or creates the store in `directory`. Throws a CacheError that says what is wrong. */
export async function openStore(directory: string, migrations: string, limits: StoreLimits, parts: StoreParts): Promise<SqliteStore> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lockFile = join(directory, 'strata.lock');
  ensurePrivate(lockFile);
  const lock = acquireLock(lockFile, directory);
  try {
    const files = { databaseFile: join(directory, 'strata.db'), witnessFile: join(directory, 'strata.witness') };
    tighten(directory, parts);
    ensurePrivate(files.databaseFile);
    const life = enter(files, migrations, parts.random);
    if (life.rolledBack) parts.log.warn('store.rolled-back', { revision: life.revision, epoch: life.epochs.at(-1)?.epoch });
    const momentIntervalMs = momentInterval(limits.history.historyAgeMs, limits.history.tombstoneAgeMs);
    const worker = await startCommitter({ ...files, nonce: life.nonce, epoch: life.epochs.at(-1)?.epoch ?? 0, momentIntervalMs });
    return new SqliteStore({ lock, life, worker, reader: openReader(files.databaseFile) }, limits, parts);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function enter(files: { databaseFile: string; witnessFile: string }, migrations: string, random: () => number): Life {
  const database = openWriter(files.databaseFile);
  try {
    migrate(database, migrations);
    return begin(database, readWitness(files.witnessFile), randomDigits(nonceDigits, random), random);
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
