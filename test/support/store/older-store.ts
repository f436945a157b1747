/** Turns a database of this release into one that an earlier release left. */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection } from '../../../src/store/sqlite/database.js';
import { projectFile } from '../project.js';

/** Makes a folder with only these migration steps, within the given folder. */
export function firstSteps(folder: string, ...names: readonly string[]): string {
  const steps = join(folder, 'migrations');
  mkdirSync(steps);
  for (const name of names) copyFileSync(projectFile(`migrations/${name}`), join(steps, name));
  return steps;
}

/**
 * Copies a table of the attached store `now` into an earlier schema, whose table may lack only the
 * last columns.
 */
export function copyBack(database: Connection, table: string): void {
  const columnsOf = (schema: string): readonly string[] =>
    (database.pragma(`${schema}.table_info(${table})`) as readonly { name: string }[]).map(({ name }) => `"${name}"`);
  const columns = columnsOf('now').slice(0, columnsOf('main').length);
  database.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT ${columns.join(', ')} FROM now.${table}`);
}

const changesOfFirst =
  'revision, resource, kind, replaced, shard, cluster, namespace, name, version, metadata_start, metadata_end, annotations_at, revision_at, body';

/**
 * Fills a database of an earlier schema from one of this release: the tables that every schema has.
 */
export function goBack(database: Connection, directory: string): void {
  database.exec(`ATTACH '${join(directory, 'strata.db')}' AS now`);
  for (const table of ['meta', 'resources', 'paths', 'moments']) copyBack(database, table);
  database.exec(`INSERT INTO main.changes (${changesOfFirst}) SELECT ${changesOfFirst} FROM now.changes`);
}

/**
 * Fills a database of the second schema from one of this release, with everything that the second
 * schema had.
 */
export function backToSecond(database: Connection, directory: string): void {
  goBack(database, directory);
  database.exec(`
    INSERT INTO main.epochs VALUES (4500000, 1);
    INSERT INTO main.meta VALUES ('nonce', 'a'), ('previous_nonce', 'b');
    INSERT INTO main.objects SELECT resource, shard, cluster, namespace, name, revision FROM now.objects;
    INSERT INTO main.slices SELECT shard, resource, objects, bytes, changed_ms, synced_term, ever_synced FROM now.slices;
    INSERT INTO main.shards SELECT shard, term, removed FROM now.shards WHERE plain = 0`);
}
