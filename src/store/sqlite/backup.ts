/**
 * Copies a database while the store writes to it: SQLite's online backup, page by page, through a
 * read-only connection of its own.
 *
 * The copy shows one moment. A read transaction pins that moment until the copy is done, because
 * otherwise SQLite would restart the copy after each commit, and never finish. The writer does not
 * wait, but its log (-wal) cannot start over, and grows by everything written during the copy.
 *
 * K1 A file with the requested name is complete and on the disk. An unfinished copy has another
 *    name.
 *
 * Bound: the copy fails once the log has grown by `logGrowthBytesMax`.
 */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { failpoint } from '../../diagnostics/failpoint.js';
import { CacheError } from '../../domain/errors.js';
import { openPlain, openReader, type Connection } from './database.js';
import { ensurePrivate } from './private-files.js';
import { bytesOf } from './store-files.js';

/** 2 MiB: a few milliseconds. */
const pagesInStep = 256;
const logGrowthBytesMax = 1024 * 1024 * 1024;

/** Returns the size of the copy in bytes. The copy replaces any file `to`. */
export async function copyDatabase(from: string, to: string, growthBytesMax = logGrowthBytesMax): Promise<number> {
  const unfinished = `${to}.partial`;
  removeDatabase(unfinished);
  try {
    const source = openReader(from);
    try {
      if (bytesOf(from) === 0) throw new CacheError(`${from} is empty`);
      ensurePrivate(unfinished);
      await copyPages(source, { from, to: unfinished, growthBytesMax });
    } finally {
      source.close();
    }
    // Without WAL mode, the copy is a single file that can be read in any directory. A store that
    // opens the copy switches it to WAL mode.
    const copy = openPlain(unfinished);
    copy.pragma('journal_mode = DELETE');
    copy.close();
    sync(unfinished);
    failpoint('copy.before-name');
    rename(unfinished, to);
    return bytesOf(to) ?? 0;
  } catch (error) {
    removeDatabase(unfinished);
    throw error;
  }
}

/** Removes a database and the files that SQLite keeps beside it. */
export function removeDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(file + suffix, { force: true });
}

/** Renames in a way that survives a loss of power. */
export function rename(from: string, to: string): void {
  renameSync(from, to);
  sync(dirname(to));
}

async function copyPages(
  source: Connection,
  { from, to, growthBytesMax }: Readonly<{ from: string; to: string; growthBytesMax: number }>,
): Promise<void> {
  const log = `${from}-wal`;
  source.exec('BEGIN');
  // The first read chooses the moment.
  source.pragma('schema_version');
  const before = bytesOf(log) ?? 0;
  await source.backup(to, {
    progress: () => {
      if ((bytesOf(log) ?? 0) - before > growthBytesMax)
        throw new CacheError(`more than ${growthBytesMax} bytes were written while ${from} was copied; try again at a quieter time`);
      return pagesInStep;
    },
  });
  source.exec('ROLLBACK');
}

function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
