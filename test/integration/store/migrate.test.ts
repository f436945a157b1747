import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { CacheError } from '../../../src/domain/errors.js';
import { assertSqliteVersion, openReader, openWriter, type Connection } from '../../../src/store/sqlite/database.js';
import { migrate } from '../../../src/store/sqlite/migrate.js';
import { projectFile } from '../../support/project.js';
import { storeDirectory } from '../../support/test-store.js';

function aDatabase(t: ExecutionContext): { database: Connection; steps: (files: Record<string, string>) => string } {
  const directory = storeDirectory(t);
  const database = openWriter(join(directory, 'strata.db'));
  t.teardown(() => database.close());
  let count = 0;
  const steps = (files: Record<string, string>): string => {
    const folder = join(directory, `migrations${count++}`);
    mkdirSync(folder);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    return folder;
  };
  return { database, steps };
}

const schemaOf = (database: Connection): number => Number(database.pragma('user_version', { simple: true }));
const tablesOf = (database: Connection): unknown[] =>
  database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`).pluck().all();

const first = { '0001-one.sql': 'CREATE TABLE one (a INTEGER) STRICT;' };
const second = { ...first, '0002-two.sql': 'CREATE TABLE two (a INTEGER) STRICT; INSERT INTO two (a) SELECT a FROM one;' };

test('a fresh database gets every migration, an older one those it lacks, a current one none', (t) => {
  const { database, steps } = aDatabase(t);

  migrate(database, steps(first));
  t.is(schemaOf(database), 1);
  database.exec('INSERT INTO one (a) VALUES (7)');
  migrate(database, steps(second));
  t.is(schemaOf(database), 2);
  t.deepEqual(database.prepare('SELECT a FROM two').pluck().all(), [7]);
  migrate(database, steps(second));

  t.deepEqual(tablesOf(database), ['one', 'two']);
});

test('a database that could not return free pages can do so after its migration', (t) => {
  const { database, steps } = aDatabase(t);
  migrate(database, steps(first));
  database.exec('PRAGMA auto_vacuum = NONE; VACUUM');
  const vacuum = (): unknown => database.pragma('auto_vacuum', { simple: true });
  t.is(vacuum(), 0);
  database.exec('INSERT INTO one (a) VALUES (7)');

  migrate(database, steps(first));
  t.is(vacuum(), 0, 'not before there is a migration to run');
  migrate(database, steps(second));

  t.is(vacuum(), 2);
  t.deepEqual(database.prepare('SELECT a FROM two').pluck().all(), [7]);
});

test('a database is rewritten through a file, because memory has no room for a large one', (t) => {
  const { database, steps } = aDatabase(t);
  migrate(database, steps(first));
  database.exec('PRAGMA auto_vacuum = NONE; VACUUM');
  const stores: unknown[] = [];
  const { exec } = database;
  database.exec = (sql) => {
    if (sql === 'VACUUM') stores.push(database.pragma('temp_store', { simple: true }));
    return exec.call(database, sql);
  };

  migrate(database, steps(second));

  const [inFile, inMemory] = [1, 2];
  t.deepEqual(stores, [inFile]);
  t.is(database.pragma('temp_store', { simple: true }), inMemory);
});

test('data of a newer release is refused with a reason, and left unchanged', (t) => {
  const { database, steps } = aDatabase(t);
  migrate(database, steps(second));

  t.throws(() => migrate(database, steps(first)), {
    instanceOf: CacheError,
    message: 'the data was written by a newer release (schema 2, this one knows 1)',
  });
  t.deepEqual(tablesOf(database), ['one', 'two']);
});

test('migrations with a gap, with the same number twice, or out of order are refused before they change anything', (t) => {
  for (const files of [
    { '0002-two.sql': 'CREATE TABLE two (a);' },
    { ...first, '0001-zwei.sql': 'CREATE TABLE two (a);' },
    { ...first, '0003-three.sql': 'CREATE TABLE two (a);' },
  ]) {
    const { database, steps } = aDatabase(t);
    t.throws(() => migrate(database, steps(files)), { instanceOf: CacheError, message: /^migration \d{4}-\w+\.sql is out of order$/ });
    t.false(tablesOf(database).includes('two'));
  }
});

test('a migration that fails leaves no trace', (t) => {
  const { database, steps } = aDatabase(t);
  const broken = { ...second, '0003-three.sql': 'CREATE TABLE three (a INTEGER) STRICT; SELECT nonsense;' };
  migrate(database, steps(first));

  t.throws(() => migrate(database, steps(broken)), { any: true, message: /no such column/ });
  t.deepEqual(tablesOf(database), ['one']);
  t.is(schemaOf(database), 1);
  migrate(database, steps(second));

  t.is(schemaOf(database), 2);
});

test('files that are not migrations are ignored', (t) => {
  const { database, steps } = aDatabase(t);

  migrate(database, steps({ ...first, 'README.md': 'x', '0002-Two.sql': 'x', '2-two.sql': 'x' }));

  t.is(schemaOf(database), 1);
});

test('the migrations of this release create the schema on a fresh database', (t) => {
  const { database } = aDatabase(t);

  migrate(database, projectFile('migrations'));

  t.true(schemaOf(database) > 0);
  t.deepEqual(tablesOf(database), [
    'changes',
    'epochs',
    'links',
    'meta',
    'milestones',
    'moments',
    'objects',
    'path_moves',
    'paths',
    'resources',
    'shards',
    'slices',
  ]);
});

test('a SQLite library that may lose commits is refused', (t) => {
  for (const version of ['3.51.2', '3.50.9', '3.7.0', '2.99.99', '0'])
    t.throws(() => assertSqliteVersion(version), { instanceOf: CacheError, message: /WAL-reset bug/ }, version);
  for (const version of ['3.51.3', '3.51.10', '3.52.0', '3.100.0', '4.0.0', '4']) t.notThrows(() => assertSqliteVersion(version), version);
});

test('the writer is as durable as it claims, and a reader cannot write', (t) => {
  const { database } = aDatabase(t);
  const pragma = (name: string): unknown => database.pragma(name, { simple: true });

  t.is(pragma('journal_mode'), 'wal');
  t.is(pragma('synchronous'), 2, 'FULL');
  const reader = openReader(database.name);
  t.teardown(() => reader.close());
  t.throws(() => reader.exec('CREATE TABLE x (a)'), { any: true, message: /readonly/ });
});
