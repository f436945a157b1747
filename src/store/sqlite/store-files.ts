/**
 * The files of a store in its directory, and how a database is renamed with all its files. SQLite finds the log of a database by the
 * name, and its rollback journal too. So they go together, the database first: one that is left alone would be played on whatever database takes its name.
 *
 *   strata.db, -wal, -shm            the database; -journal until it has a log
 *   strata.lock                      held by whoever has the store open
 *   strata.db.schema-N               what it was before the last migration
 *   strata.db.damaged-TIME           moved out of the way by a start that found damage; while it is there no empty store begins
 *   strata.db.restored-TIME          about to become the database: a start or another restore goes on with it
 *   strata.db.replaced-TIME          what was there before that
 */
import { closeSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import { failpoint } from '../../diagnostics/failpoint.js';

export const databaseName = 'strata.db';
export const lockName = 'strata.lock';

/** `start` and the time, as 20261122T061500Z: sorts by time, and is a name everywhere. A second later where the name is taken. */
export function freeName(directory: string, start: string, nowMs: number): string {
  const name = start + new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return bytesOf(join(directory, name)) === undefined ? name : freeName(directory, start, nowMs + 1_000);
}

/** The databases in the directory whose names begin with that, the newest last. */
export function namesOf(directory: string, start: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith(start) && !/-(?:wal|shm|journal)$/.test(name))
    .toSorted();
}

/** Renames the database with its log or journal, as far as they exist; if that was cut short, a second call with the same name moves the rest. */
export function setAside(directory: string, as: string): void {
  for (const suffix of ['', '-wal', '-journal']) {
    const file = join(directory, databaseName + suffix);
    if (bytesOf(file) !== undefined) renameSync(file, join(directory, as + suffix));
    if (suffix === '') failpoint('aside.database');
  }
  rmSync(join(directory, `${databaseName}-shm`), { force: true });
}

/** Undefined where there is none. */
export function bytesOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

/** The database and its log, to see whether the disk gives them. Throws CacheError. */
export function readWhole(directory: string): void {
  const part = Buffer.alloc(1024 * 1024);
  for (const file of [join(directory, databaseName), join(directory, `${databaseName}-wal`)]) {
    if (bytesOf(file) === undefined) continue;
    const opened = openSync(file, 'r');
    try {
      while (readSync(opened, part) > 0);
    } catch (error) {
      throw new CacheError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
    } finally {
      closeSync(opened);
    }
  }
}
