/**
 * A database that is not what was written: it is moved out of the way, whole and with its log, and neither served nor deleted. An operator
 * decides about the store, because an empty one would look like the truth.
 */
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import { bytesOf, databaseName, freeName, namesOf, setAside } from './store-files.js';

const damaged = `${databaseName}.damaged-`;

/** `file`: where the damaged database lies now. */
export class DamagedStore extends CacheError {
  readonly file: string;
  readonly problem: string;

  constructor(file: string, problem: string) {
    super(`the store is damaged (${problem}); it lies in ${file}`);
    this.file = file;
    this.problem = problem;
  }
}

/** What a check has found. */
export class Unsound extends CacheError {}

/** Whether the error means that the file is not SQLite's, or broken; not that the disk is full or fails, or that another has the file open. */
export function isDamage(error: unknown): error is Error {
  const code = (error as { code?: unknown }).code;
  return error instanceof Unsound || (typeof code === 'string' && (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB'));
}

/** What was opened, or the damage that kept it from opening. */
export async function unlessDamaged<T>(opening: Promise<T>): Promise<T | DamagedStore> {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof DamagedStore) return error;
    throw error;
  }
}

export function setDamagedAside(directory: string, problem: string, nowMs: number): DamagedStore {
  const name = freeName(directory, damaged, nowMs);
  setAside(directory, name);
  return new DamagedStore(join(directory, name), problem);
}

/** One that an earlier start has moved out of the way, with its log, and that is still there. */
export function damagedBefore(directory: string): DamagedStore | undefined {
  const name = namesOf(directory, damaged).at(-1);
  if (name !== undefined && bytesOf(join(directory, databaseName)) === undefined) setAside(directory, name);
  return name === undefined ? undefined : new DamagedStore(join(directory, name), 'found by a start before this one');
}
