/**
 * An empty database of the newest schema and a serving certificate. A worker makes them once and
 * copies them for each server and store of its tests, which would otherwise make them at their
 * first start. The tests of migrations and of certificates do not use them.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openWriter } from '../../src/store/sqlite/database.js';
import { migrate, ownMigrations } from '../../src/store/sqlite/migrate.js';
import { databaseName } from '../../src/store/sqlite/store-files.js';

const certificateFiles = ['apiserver.key', 'apiserver.crt'] as const;
let database: Buffer | undefined;
let certificate: readonly Buffer[] | undefined;

/** Copies the database into a data folder that has none. */
export function copyDatabase(directory: string): void {
  const file = join(directory, databaseName);
  if (existsSync(file)) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(file, (database ??= emptyDatabase()), { mode: 0o600 });
}

/** Copies the certificate into a folder that has none, once `keepCertificate` has one. */
export function copyCertificate(directory: string): void {
  if (certificate === undefined || existsSync(join(directory, certificateFiles[0]))) return;
  mkdirSync(directory, { recursive: true });
  for (const [i, name] of certificateFiles.entries()) writeFileSync(join(directory, name), certificate[i]!, { mode: 0o600 });
}

/** Keeps the certificate that a server has made in this folder, for later copies. */
export function keepCertificate(directory: string): void {
  certificate ??= certificateFiles.map((name) => readFileSync(join(directory, name)));
}

function emptyDatabase(): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'strata-made-'));
  try {
    const file = join(directory, databaseName);
    const connection = openWriter(file);
    migrate(connection, ownMigrations);
    connection.close();
    return readFileSync(file);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
