/** Inspects a database: its schema, and whether it is sound. */
import { join } from 'node:path';
import { CacheError } from '../../domain/errors.js';
import type { CheckResult } from '../damaged-store.js';
import { checkDatabase } from './check.js';
import { isDamage } from './damage.js';
import { openReader, type Connection } from './database.js';
import { readEpochs, readMeta } from './life.js';
import { knownSchema, schemaOf } from './migrate.js';
import { SqliteRevisions } from './revisions.js';
import { lockStore } from './lock.js';
import { bytesOf, databaseName } from './store-files.js';

export type Inspected = Readonly<{
  schema: number;
  /**
   * Undefined for a damaged database, and for an older schema, which a start must migrate first.
   */
  resourceVersion: string | undefined;
  checks: readonly CheckResult[];
}>;

/**
 * Inspects the store of a directory. No server may have the store open; for a running server, check
 * a backup instead. Throws CacheError.
 */
export function inspectStopped(directory: string, migrations: string, how: Readonly<{ thorough: boolean }>): Inspected {
  if (bytesOf(join(directory, databaseName)) === undefined) throw new CacheError(`there is no store in ${directory}`);
  const lock = lockStore(directory);
  try {
    return inspect(join(directory, databaseName), migrations, how);
  } finally {
    lock.release();
  }
}

/**
 * Throws CacheError if the file is no store, or if a newer release wrote it. Damage is a problem in
 * `checks`.
 */
export function inspect(file: string, migrations: string, how: Readonly<{ thorough: boolean }>): Inspected {
  try {
    const database = openReader(file);
    try {
      const schema = schemaOf(database);
      if (schema === 0) throw new CacheError(`${file} is not a Strata store`);
      const known = knownSchema(migrations);
      if (schema > known) throw new CacheError(`${file} was written by a newer release (schema ${schema}, this one knows ${known})`);
      const checks: CheckResult[] = [];
      for (const check of checkDatabase(database, how)) {
        checks.push(check);
        // The other checks know only the tables of this release's schema.
        if (schema < known) break;
      }
      const isSound = checks.every(({ problems }) => problems.length === 0);
      return { schema, resourceVersion: schema === known && isSound ? resourceVersionOf(database) : undefined, checks };
    } finally {
      database.close();
    }
  } catch (error) {
    if (isDamage(error))
      return { schema: 0, resourceVersion: undefined, checks: [{ what: 'file', examined: 0, problems: [error.message] }] };
    if ((error as { code?: unknown }).code === 'SQLITE_CANTOPEN') throw new CacheError(`${file} cannot be opened`, { cause: error });
    throw error;
  }
}

function resourceVersionOf(database: Connection): string {
  const revision = readMeta(database, 'revision');
  return new SqliteRevisions({ epochs: readEpochs(database), revision, compacted: 0 }).format(revision);
}
