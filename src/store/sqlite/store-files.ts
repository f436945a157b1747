/**
 * The files of a store in its directory, and how a database is renamed with all its files. SQLite
 * finds the log and the rollback journal of a database by their names, so they are renamed after
 * the database. SQLite would apply a log that stays behind to the next database of that name.
 *
 *   strata.db, -wal, -shm     the database; -journal until there is a log
 *   strata.lock               locked by the process that has the store open
 *   strata.db.schema-N        the database before the last migration
 *   strata.db.damaged-TIME    moved aside by a start that found damage. While it exists, no empty
 *                             store begins.
 *   strata.db.restored-TIME   about to become the database. The next start or restore does that.
 *   strata.db.replaced-TIME   the database before a restore
 */
import { closeSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import { failpoint } from '../../diagnostics/failpoint.js';

export const databaseName = 'strata.db';
export const lockName = 'strata.lock';

/**
 * `start` and the time, as 20261122T061500Z: such names sort by time, and are valid in every file
 * system. If a name is taken, the next second is tried.
 */
export function freeName(directory: string, start: string, nowMs: number): string {
  const name = start + new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return bytesOf(join(directory, name)) === undefined ? name : freeName(directory, start, nowMs + 1_000);
}

/** The databases in the directory whose names begin with `start`, the newest last. */
export function namesOf(directory: string, start: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith(start) && !/-(?:wal|shm|journal)$/.test(name))
    .toSorted();
}

/**
 * Renames the database with its log and its journal, as far as they exist. If that is cut short, a
 * second call with the same name renames the rest.
 */
export function moveAside(directory: string, as: string): void {
  for (const suffix of ['', '-wal', '-journal']) {
    const file = join(directory, databaseName + suffix);
    if (bytesOf(file) !== undefined) renameSync(file, join(directory, as + suffix));
    if (suffix === '') failpoint('aside.database');
  }
  rmSync(join(directory, `${databaseName}-shm`), { force: true });
}

/** Undefined if there is no such file. */
export function bytesOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

/** Throws CacheError if the disk cannot read the database or its log. */
export function readAll(directory: string): void {
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
