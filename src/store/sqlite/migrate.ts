/**
 * Brings a database to the newest schema, forward only, all steps in one transaction.
 * `user_version` counts the steps taken. `migrate` refuses a database of a newer release, because
 * this release cannot read it. It first rewrites a database that an older release made without
 * `auto_vacuum`, so that the file can shrink.
 *
 * A migration that is cut short leaves the old schema, and the next start repeats all steps. They
 * share one transaction, because a stop between two steps would leave a schema that no release ever
 * had. The next start keeps a copy of the database before it migrates (enter-store.ts), and that
 * copy would have that schema, too.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { failpoint } from '../../diagnostics/failpoint.js';
import { digestOf } from '../../domain/slices/digest.js';
import { CacheError } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import { defineChecksumFunctions } from './change-row.js';
import { Unsound } from './damage.js';
import { isRefusal, readPragma, type Connection } from './database.js';

const fileName = /^(\d{4})-[a-z0-9-]+\.sql$/;

/** How many steps the database has taken. */
export function schemaOf(database: Connection): number {
  return readPragma(database, 'user_version');
}

/** How many steps this release knows. */
export function knownSchema(directory: string): number {
  return stepsIn(directory).length;
}

export const ownMigrations = fileURLToPath(new URL('../../../../migrations', import.meta.url));

export function migrate(database: Connection, directory: string): void {
  const steps = stepsIn(directory);
  const taken = schemaOf(database);
  if (taken > steps.length) {
    throw new CacheError(`the data was written by a newer release (schema ${taken}, this one knows ${steps.length})`);
  }
  if (taken === steps.length) return;
  if (taken > 0) rewrite(database);
  defineDigestFunctions(database);
  defineChecksumFunctions(database);
  database.transaction(() => {
    steps.forEach((name, i) => {
      if (i < taken) return;
      if (Number(fileName.exec(name)?.[1]) !== i + 1) throw new CacheError(`migration ${name} is out of order`);
      database.exec(readFileSync(join(directory, name), 'utf8'));
      database.pragma(`user_version = ${i + 1}`);
      failpoint('migration.step');
    });
  })();
}

/**
 * SQLite builds the new database in a temporary file and copies it over this one. That needs twice
 * the file's length on the disk. Without that space, the old file stays; SQLite uses its free pages
 * again.
 */
function rewrite(database: Connection): void {
  if (readPragma(database, 'auto_vacuum') !== 0) return;
  try {
    database.pragma('auto_vacuum = INCREMENTAL');
    database.pragma('temp_store = FILE');
    database.exec('VACUUM');
    failpoint('migration.rewritten');
  } catch (error) {
    if (!isRefusal(error)) throw error;
  } finally {
    database.pragma('temp_store = MEMORY');
  }
}

function stepsIn(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => fileName.test(name))
    .toSorted();
}

/**
 * Defines SQL functions that compute the halves of an object's digest, and verify a digest.
 * Migrations need them for objects stored before digests existed.
 */
function defineDigestFunctions(database: Connection): void {
  type Names = [cluster: Key['cluster'], namespace: string, name: string];
  database.function('confirm_digest', { varargs: true }, ((
    high: number,
    low: number,
    version: string,
    bytes: Uint8Array,
    ...names: Names
  ) => {
    const [cluster, namespace, name] = names;
    const digest = digestOf({ cluster, namespace, name }, { bytes, version });
    if (digest.high !== high || digest.low !== low) throw new Unsound(`the digest of ${JSON.stringify(names)} does not match its body`);
    return 1;
  }) as (...columns: unknown[]) => number);
  for (const half of ['high', 'low'] as const) {
    database.function(
      `digest_${half}`,
      { deterministic: true },
      (cluster: Key['cluster'], namespace: string, name: string, version: string, bytes: Uint8Array) =>
        digestOf({ cluster, namespace, name }, { bytes, version })[half],
    );
  }
}
