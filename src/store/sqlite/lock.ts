/**
 * One server per data directory. The lock is SQLite's own exclusive lock on an empty database beside the store: the kernel
 * drops it when the process ends, however it ends, so it can never be stale.
 */
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import { isRefusal } from './database.js';
import { Database } from './driver.js';
import { ensurePrivate } from './private-files.js';
import { lockName } from './store-files.js';

export type Lock = Readonly<{ release: () => void }>;

/** Throws a CacheError when a server, or any other process, holds the directory, or the disk does not let anybody hold it. */
export function lockStore(directory: string): Lock {
  const file = join(directory, lockName);
  ensurePrivate(file);
  const database = new Database(file, { timeout: 0 });
  try {
    // Nothing is ever written, so that a full disk keeps nobody out. Before the mode that keeps what a read has locked: two that start at once would refuse each other.
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
