/**
 * One server per data directory. The lock is SQLite's own exclusive lock on an empty database beside the store: the kernel
 * drops it when the process ends, however it ends, so it can never be stale.
 */
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import { Database } from './driver.js';
import { ensurePrivate } from './private-files.js';
import { lockName } from './store-files.js';

export type Lock = Readonly<{ release: () => void }>;

/** Throws a CacheError when a server, or any other process, holds the directory. */
export function lockStore(directory: string): Lock {
  const file = join(directory, lockName);
  ensurePrivate(file);
  const database = new Database(file, { timeout: 0 });
  try {
    database.pragma('locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    database.close();
    throw new CacheError(`the data directory ${directory} is in use by another server`, { cause });
  }
  return { release: () => database.close() };
}
