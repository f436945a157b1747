/**
 * One server per data directory. The lock is SQLite's exclusive lock on an empty database beside
 * the store. The kernel releases the lock whenever and however the process ends, so the lock can
 * never be stale.
 */
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import { isRefusal } from './database.js';
import { Database } from './driver.js';
import { ensurePrivate } from './private-files.js';
import { lockName } from './store-files.js';

export type Lock = Readonly<{ release: () => void }>;

/** Throws CacheError if another process has the lock, or if the disk does not permit one. */
export function lockStore(directory: string): Lock {
  const file = join(directory, lockName);
  ensurePrivate(file);
  const database = new Database(file, { timeout: 0 });
  try {
    // With the journal in memory, nothing is ever written, so the lock works on a full disk. This
    // setting must precede the exclusive mode. In that mode even a read keeps its lock, and two
    // processes that start at once would refuse each other.
    database.pragma('journal_mode = MEMORY');
    database.pragma('locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    database.close();
    if (!isRefusal(cause) || cause.code !== 'SQLITE_BUSY')
      throw new CacheError(`${file} cannot be locked: ${(cause as Error).message}`, { cause });
    throw new CacheError(`the data directory ${directory} is in use by another server`, { cause });
  }
  return { release: () => database.close() };
}
