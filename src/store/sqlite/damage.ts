/**
 * A damaged database. The start that finds it moves it aside with its log, and neither serves nor
 * deletes it. It also begins no empty store, because clients would believe that no object exists.
 * An operator decides what happens.
 */
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import { DamagedStore } from '../damaged-store.js';
import { bytesOf, databaseName, freeName, namesOf, moveAside } from './store-files.js';

const damaged = `${databaseName}.damaged-`;

/** A check has found damage. */
export class Unsound extends CacheError {}

/**
 * Whether the error means that the file is damaged, or is no SQLite database. A full or failing
 * disk, or a locked file, is no damage.
 */
export function isDamage(error: unknown): error is Error {
  const code = (error as { code?: unknown }).code;
  return error instanceof Unsound || (typeof code === 'string' && (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB'));
}

/** Whether an operation of the disk failed. A full disk does not count. */
export function isFailureOfDisk(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('SQLITE_IOERR');
}

export function setDamagedAside(directory: string, problem: string, nowMs: number): DamagedStore {
  const name = freeName(directory, damaged, nowMs);
  moveAside(directory, name);
  return new DamagedStore(join(directory, name), problem);
}

/**
 * The newest damaged database that an earlier start moved aside, if it is still there. If that
 * start was cut short before it moved the log, this moves the log. If the damaged database already
 * has its log, a log that is still in place belongs to another database, and stays.
 */
export function damagedBefore(directory: string): DamagedStore | undefined {
  const name = namesOf(directory, damaged).at(-1);
  const isThere = (each: string): boolean => bytesOf(join(directory, each)) !== undefined;
  if (name !== undefined && !isThere(databaseName) && !isThere(`${name}-wal`)) moveAside(directory, name);
  return name === undefined ? undefined : new DamagedStore(join(directory, name), 'an earlier start found it');
}
