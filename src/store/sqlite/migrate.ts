/**
 * Brings a database to the newest schema, forward only, all steps in one transaction. `user_version` counts the steps
 * taken. A database from a newer release is refused, because this one cannot read it. One that an older release made without
 * `auto_vacuum` is rewritten first, so that it can give free pages back.
 *
 * A migration that is cut short leaves the old schema, so the next start does all of it again. If it stopped between two steps, the schema
 * could be one that no release ever had, and the next start's copy would have it too.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { failpoint } from '../../diagnostics/failpoint.js';
import { digestOf } from '../../domain/digest.js';
import { CacheError } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import { teachChecksums } from './change-row.js';
import { Unsound } from './damage.js';
import { isRefusal, type Connection } from './database.js';

const fileName = /^(\d{4})-[a-z0-9-]+\.sql$/;

/** How many steps a database has taken. */
export function schemaOf(database: Connection): number {
  return Number(database.pragma('user_version', { simple: true }));
}

/** How many steps this release knows. */
export function knownSchema(directory: string): number {
  return stepsIn(directory).length;
}

/** Where the steps of this release lie. */
export const ownMigrations = fileURLToPath(new URL('../../../../migrations', import.meta.url));

export function migrate(database: Connection, directory: string): void {
  const steps = stepsIn(directory);
  const taken = schemaOf(database);
  if (taken > steps.length) {
    throw new CacheError(`the data was written by a newer release (schema ${taken}, this one knows ${steps.length})`);
  }
  if (taken === steps.length) return;
  if (taken > 0) rewrite(database);
  teachDigests(database);
  teachChecksums(database);
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

/** Needs the file's length twice, on the disk, while it runs. Where there is no room, free pages stay and are used again. */
function rewrite(database: Connection): void {
  if (Number(database.pragma('auto_vacuum', { simple: true })) !== 0) return;
  try {
    database.pragma('auto_vacuum = INCREMENTAL');
    database.exec('VACUUM');
    failpoint('migration.rewritten');
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
}

function stepsIn(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => fileName.test(name))
    .toSorted();
}

/** Defines SQL functions: the halves of an object's digest, for objects from before digests were kept, and a check of them afterwards. */
function teachDigests(database: Connection): void {
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
    if (digest.high !== high || digest.low !== low) throw new Unsound(`${JSON.stringify(names)} has another digest than its body`);
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
