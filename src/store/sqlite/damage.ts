/**
 * A database that is not what was written: it is moved out of the way, whole and with its log, and neither served nor deleted. An operator
 * decides about the store, because an empty one would look like the truth.
 */
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import { DamagedStore } from '../damaged-store.js';
import { bytesOf, databaseName, freeName, namesOf, setAside } from './store-files.js';

const damaged = `${databaseName}.damaged-`;

/** What a check has found. */
export class Unsound extends CacheError {}

/** Whether the error means that the file is not SQLite's, or broken; not that the disk is full or fails, or that another has the file open. */
export function isDamage(error: unknown): error is Error {
  const code = (error as { code?: unknown }).code;
  return error instanceof Unsound || (typeof code === 'string' && (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB'));
}

/** Whether the disk has not done what it was asked. One that is full is another matter. */
export function isFailureOfDisk(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('SQLITE_IOERR');
}

export function setDamagedAside(directory: string, problem: string, nowMs: number): DamagedStore {
  const name = freeName(directory, damaged, nowMs);
  setAside(directory, name);
  return new DamagedStore(join(directory, name), problem);
}

/** One that an earlier start has moved out of the way, with its log, and that is still there. A second log is not its own. */
export function damagedBefore(directory: string): DamagedStore | undefined {
  const name = namesOf(directory, damaged).at(-1);
  const isThere = (each: string): boolean => bytesOf(join(directory, each)) !== undefined;
  if (name !== undefined && !isThere(databaseName) && !isThere(`${name}-wal`)) setAside(directory, name);
  return name === undefined ? undefined : new DamagedStore(join(directory, name), 'found by a start before this one');
}
