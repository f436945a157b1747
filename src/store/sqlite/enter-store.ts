/**
 * Turns the files of a data directory into a database that the committer can open. It finishes a
 * restore, looks for damage after an unclean end, keeps a copy before a migration, and begins a
 * life. The caller holds the lock.
 *
 *   small            checked thoroughly
 *   closed cleanly   not checked
 *   not closed       checked quickly, if it is not larger than `startCheckBytesMax`
 *   damaged          moved aside. No store opens here until an operator has put one back, or has
 *                    removed the damaged one.
 *
 * SQLite also reports damage if the disk cannot be read. So after a report of damage, the start
 * reads all files. If the disk cannot read them, the start ends, and the files stay as they are.
 * Otherwise the start checks again whether the files are damaged.
 */
import { join } from 'node:path';
import { failpoint } from '../../diagnostics/failpoint.js';
import type { Log } from '../../diagnostics/log.js';
import { copyDatabase, removeDatabase } from './backup.js';
import { checkDatabase } from './check.js';
import { damagedBefore, isDamage, setDamagedAside, Unsound } from './damage.js';
import { openReader, openWriter, type Connection } from './database.js';
import type { EpochParts } from '../epochs.js';
import { begin, wasLeftOpen, type Life } from './life.js';
import { knownSchema, migrate, schemaOf } from './migrate.js';
import { ensurePrivate } from './private-files.js';
import { finishRestore } from './restore.js';
import { bytesOf, databaseName, namesOf, readAll } from './store-files.js';

export type EnterParts = EpochParts & Readonly<{ log: Log; startCheckBytesMax: number }>;

/**
 * A thorough check of this many bytes takes 100 to 300 ms, the longer the smaller the objects are.
 */
const smallBytesMax = 8 * 1024 * 1024;

const olderSchema = `${databaseName}.schema-`;

/** Throws DamagedStore. */
export async function enterStore(directory: string, migrations: string, parts: EnterParts): Promise<Life> {
  const replaced = finishRestore(directory);
  if (replaced !== undefined) parts.log.warn('store.restore-finished', { replaced });
  const file = join(directory, databaseName);
  const damaged = damagedBefore(directory);
  if (damaged !== undefined && (bytesOf(file) ?? 0) === 0) throw damaged;
  ensurePrivate(file);
  const enter = async (): Promise<Life> => {
    if ((bytesOf(file) ?? 0) > 0) checkAtStart(file, migrations, parts);
    return migrateAndBegin(directory, migrations, parts);
  };
  try {
    return await enter().catch((error: unknown) => {
      if (!isDamage(error)) throw error;
      readAll(directory);
      return enter();
    });
  } catch (error) {
    if (isDamage(error)) throw setDamagedAside(directory, error.message, parts.nowMs);
    throw error;
  }
}

/** Opens the file read-only, so that a damaged file stays as it is. */
function checkAtStart(file: string, migrations: string, { log, startCheckBytesMax }: EnterParts): void {
  const database = openReader(file);
  try {
    const schema = schemaOf(database);
    const bytes = bytesOf(file) ?? 0;
    const thorough = bytes <= Math.min(smallBytesMax, startCheckBytesMax);
    // Schema 0: the first start was cut short.
    if (schema === 0 || !(thorough || wasLeftOpen(database))) return;
    if (bytes > startCheckBytesMax) return log.warn('store.not-checked', { file, bytes, startCheckBytesMax });
    const problem = firstProblem(database, { thorough, isOlder: schema < knownSchema(migrations) });
    if (problem !== undefined) throw new Unsound(problem);
    log.info('store.checked', { file, bytes });
  } finally {
    database.close();
  }
}

/**
 * For a database of an older schema, only the check of the file runs, because this release does not
 * know what the tables should contain.
 */
function firstProblem(database: Connection, { thorough, isOlder }: { thorough: boolean; isOlder: boolean }): string | undefined {
  for (const { problems } of checkDatabase(database, { thorough })) if (isOlder || problems.length > 0) return problems[0];
  return undefined;
}

async function migrateAndBegin(directory: string, migrations: string, parts: EnterParts): Promise<Life> {
  const file = join(directory, databaseName);
  const database = openWriter(file);
  try {
    const [from, to] = [schemaOf(database), knownSchema(migrations)];
    const isOlder = from > 0 && from < to;
    const copy = `${olderSchema}${from}`;
    if (isOlder) await copyDatabase(file, join(directory, copy));
    if (isOlder) failpoint('migration.copied');
    migrate(database, migrations);
    failpoint('migration.after');
    if (isOlder) {
      dropCopies(directory, copy);
      parts.log.info('store.migrated', { from, to, copy: join(directory, copy) });
    }
    return begin(database, parts);
  } finally {
    database.close();
  }
}

/** Keeps only the copy from before the last migration, until an operator removes it. */
function dropCopies(directory: string, kept: string): void {
  for (const name of namesOf(directory, olderSchema)) if (name !== kept) removeDatabase(join(directory, name));
}
