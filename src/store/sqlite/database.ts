/**
 * Opens SQLite as this store needs it: WAL mode, `synchronous=FULL`, and a library without the
 * WAL-reset bug (fixed in 3.51.3), which loses committed writes. better-sqlite3 is compiled with
 * `synchronous=NORMAL`, under which a loss of power may undo an acknowledged commit.
 */
import { CacheError } from '../../domain/errors.js';
import { Unsound } from './damage.js';
import { Database, type Connection } from './driver.js';
import { bytesOf } from './store-files.js';

export type { Connection, Transaction } from './driver.js';

const sqliteVersionMin = [3, 51, 3] as const;
const pageBytes = 8192;
const pageCacheKiB = 8192;
const walPagesBeforeCheckpoint = 2000;
/** When the write-ahead log starts over, SQLite cuts its file to this length. */
export const walKeptBytes = walPagesBeforeCheckpoint * pageBytes;
export const busyTimeoutMs = 5000;

/** The only connection that writes and makes checkpoints. */
export function openWriter(file: string): Connection {
  const database = open(file, false);
  // The next two settings have an effect only in a new file, and must precede WAL mode.
  database.pragma(`page_size = ${pageBytes}`);
  database.pragma('auto_vacuum = INCREMENTAL');
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.pragma(`wal_autocheckpoint = ${walPagesBeforeCheckpoint}`);
  database.pragma(`journal_size_limit = ${walKeptBytes}`);
  return database;
}

/**
 * A connection that only reads. A first start, or the first one after a restore, leaves a rollback
 * journal if it is killed before the database has a write-ahead log. A read-only connection cannot
 * roll the journal back, so another connection does so first.
 */
export function openReader(file: string): Connection {
  if (bytesOf(file) !== undefined && bytesOf(`${file}-journal`) !== undefined) rollBack(file);
  const database = open(file, true);
  database.pragma('query_only = 1');
  return database;
}

/** Opens, with SQLite's defaults, a file that is no store yet, or that nobody has open. */
export function openPlain(file: string): Connection {
  return open(file, false);
}

function rollBack(file: string): void {
  const database = openPlain(file);
  try {
    // SQLite rolls back before it reads.
    database.pragma('schema_version');
  } finally {
    database.close();
  }
}

/** Throws CacheError if the library may lose commits. */
export function assertSqliteVersion(version: string): void {
  const parts = version.split('.').map(Number);
  for (const [i, least] of sqliteVersionMin.entries()) {
    const part = parts[i] ?? 0;
    if (part > least) return;
    if (part < least)
      throw new CacheError(`SQLite ${version} may lose commits (WAL-reset bug); ${sqliteVersionMin.join('.')} or later is needed`);
  }
}

export function readPragma(database: Connection, name: string): number {
  return Number(database.pragma(name, { simple: true }));
}

/** Whether the disk or SQLite refused an operation. Any other error is a bug. */
export function isRefusal(error: unknown): error is Error & { code: string } {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' && code.startsWith('SQLITE_');
}

/**
 * Throws Unsound, before it opens the file, if the database is empty and its log is not. SQLite
 * would delete that log, and with it acknowledged writes.
 */
function open(file: string, readonly: boolean): Connection {
  if ((bytesOf(file) ?? 0) === 0 && (bytesOf(`${file}-wal`) ?? 0) > 0)
    throw new Unsound(`${file} is empty, but its write-ahead log is not`);
  const database = new Database(file, { readonly, fileMustExist: readonly, timeout: busyTimeoutMs });
  const version = database.prepare<[], { version: string }>('SELECT sqlite_version() AS version').get()?.version ?? '0';
  assertSqliteVersion(version);
  database.pragma(`cache_size = -${pageCacheKiB}`);
  // A container may have no directory for temporary files.
  database.pragma('temp_store = MEMORY');
  return database;
}
