/** Copies of a store, restores, and what a start does with a damaged store (F5, F26, F27). */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
  closeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { CacheError } from '../../../src/domain/errors.js';
import { copyDatabase } from '../../../src/store/sqlite/backup.js';
import { DamagedStore } from '../../../src/store/damaged-store.js';
import { openPlain, openReader, openWriter } from '../../../src/store/sqlite/database.js';
import { inspect, inspectStopped } from '../../../src/store/sqlite/inspect.js';
import { knownSchema, migrate, ownMigrations } from '../../../src/store/sqlite/migrate.js';
import { restoreStore } from '../../../src/store/sqlite/restore.js';
import { bytesOf } from '../../../src/store/sqlite/store-files.js';
import { listTexts, mustWrite } from '../../contract/read-all.js';
import { aPut, aScope } from '../../support/objects.js';
import { storeDirectory } from '../../support/test-store.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';

const restoring = { migrations: ownMigrations, nowMs: Date.UTC(2026, 10, 22, 6, 15) };
const thorough = { thorough: true };

async function write({ store }: SqliteEngine, count: number, tag = 'n', bytes = 0): Promise<void> {
  const spec = 'x'.repeat(bytes);
  const writes = Array.from({ length: count }, (_, i) => mustWrite(store, aPut({ name: `${tag}${i}` }, 'absent', { spec })));
  await Promise.all(writes);
}

const names = ({ directory }: SqliteEngine): string[] => readdirSync(directory).toSorted();
const problemsOf = (file: string): readonly string[] => inspect(file, ownMigrations, thorough).checks.flatMap(({ problems }) => problems);
const isOpenIn = (file: string): unknown => {
  const database = openWriter(file);
  const value = database.prepare(`SELECT value FROM meta WHERE name = 'open'`).pluck().get();
  database.close();
  return value;
};

/** The files as they are now, in another directory, as a killed process leaves them. */
function killed(t: ExecutionContext, engine: SqliteEngine): string {
  const directory = join(storeDirectory(t), 'data');
  mkdirSync(directory);
  for (const name of ['strata.db', 'strata.db-wal']) copyFileSync(join(engine.directory, name), join(directory, name));
  return directory;
}

/** A store with `count` objects, and a copy of it. */
async function backedUp(t: ExecutionContext, count: number, bytes = 0): Promise<Readonly<{ engine: SqliteEngine; backup: string }>> {
  const engine = await SqliteEngine.start(t);
  await write(engine, count, 'n', bytes);
  const backup = join(storeDirectory(t), 'backup.db');
  await copyDatabase(engine.file('strata.db'), backup);
  return { engine, backup };
}

/**
 * A restored store whose first start was killed before it switched to the log: the file has part of
 * a transaction, and its journal is beside it.
 */
async function halfDone(t: ExecutionContext): Promise<Readonly<{ directory: string; backup: string }>> {
  const { backup } = await backedUp(t, 50, 20_000);
  const [live, directory] = [storeDirectory(t), join(storeDirectory(t), 'data')];
  mkdirSync(directory);
  copyFileSync(backup, join(live, 'strata.db'));
  const database = openPlain(join(live, 'strata.db'));
  // Once a transaction has outgrown SQLite's cache, SQLite writes it into the file before the
  // commit.
  database.pragma('cache_size = 1');
  database.exec(`BEGIN; UPDATE changes SET body = zeroblob(length(body))`);
  for (const name of ['strata.db', 'strata.db-journal']) copyFileSync(join(live, name), join(directory, name));
  database.close();
  t.notDeepEqual(readFileSync(join(directory, 'strata.db')), readFileSync(backup), 'part of it was written');
  return { directory, backup };
}

function flip(file: string, at: number): void {
  const fd = openSync(file, 'r+');
  writeSync(fd, Buffer.alloc(512, 0x5a), 0, 512, at);
  closeSync(fd);
}

test('a copy of a store under writes is complete, private, a single file, and of one moment', async (t) => {
  const engine = await SqliteEngine.start(t);
  await write(engine, 200, 'before', 5_000);
  const file = join(storeDirectory(t), 'copy.db');
  let isDone = false;
  let meanwhile = 0;
  const copying = copyDatabase(engine.file('strata.db'), file).finally(() => (isDone = true));
  while (!isDone) await write(engine, 1, `meanwhile${(meanwhile += 1)}-`);

  const bytes = await copying;

  t.is(bytes, statSync(file).size);
  t.is(statSync(file).mode & 0o777, 0o600);
  t.deepEqual(problemsOf(file), []);
  t.deepEqual(readdirSync(join(file, '..')), ['copy.db'], 'no other file is beside it, even after it was read');
  t.true(meanwhile > 0);
  const directory = join(storeDirectory(t), 'data');
  await restoreStore(file, directory, restoring);
  const copy = await SqliteEngine.start(t, {}, { directory });
  t.is((await listTexts(copy.store, aScope())).length, 200, 'as of the moment at which the copy began');
});

test('a copy is given up when the log grows too much in the meantime, and leaves nothing behind', async (t) => {
  const engine = await SqliteEngine.start(t);
  await write(engine, 400, 'before', 20_000);
  const directory = storeDirectory(t);

  const copying = copyDatabase(engine.file('strata.db'), join(directory, 'copy.db'), 0);
  const writing = write(engine, 100, 'meanwhile', 20_000);

  await t.throwsAsync(copying, { instanceOf: CacheError, message: /quieter time/ });
  await writing;
  t.deepEqual(readdirSync(directory), []);
});

test('a restore sets the old store aside with its log, begins another epoch, and can be undone by another restore', async (t) => {
  const { engine, backup } = await backedUp(t, 10);
  await write(engine, 5, 'lost');
  const lost = engine.store.revisions.format(engine.store.revisions.published);
  const directory = killed(t, engine);

  const { before } = await restoreStore(backup, directory, restoring);

  t.is(before, join(directory, 'strata.db.replaced-20261122T061500Z'));
  t.deepEqual(readdirSync(directory).toSorted(), [
    'strata.db',
    'strata.db.replaced-20261122T061500Z',
    'strata.db.replaced-20261122T061500Z-wal',
    'strata.lock',
  ]);
  const restored = await SqliteEngine.start(t, {}, { directory });
  t.is((await listTexts(restored.store, aScope())).length, 10);
  t.not(restored.store.revisions.locate(lost).kind, 'ours');
  await restored.store.close();

  const second = await restoreStore(before!, directory, restoring);
  t.is(second.before, join(directory, 'strata.db.replaced-20261122T061501Z'), 'even within one second each keeps the old one');
  await restored.open();
  t.is((await listTexts(restored.store, aScope())).length, 15);
  t.is(restored.store.revisions.locate(lost).kind, 'ours');
});

test('the next start finishes a restore that was cut short, wherever it was cut', async (t) => {
  const { engine, backup } = await backedUp(t, 3);
  await write(engine, 2, 'lost');
  const move = (directory: string, from: string, to: string): void => renameSync(join(directory, from), join(directory, to));
  const [pending, aside] = ['strata.db.restored-1', 'strata.db.replaced-1'];
  const cuts: readonly ((directory: string) => void)[] = [
    () => {},
    (directory) => move(directory, 'strata.db', aside),
    (directory) => (move(directory, 'strata.db', aside), move(directory, 'strata.db-wal', `${aside}-wal`)),
  ];

  for (const [i, cut] of cuts.entries()) {
    const directory = killed(t, engine);
    copyFileSync(backup, join(directory, pending));
    cut(directory);

    const restored = await SqliteEngine.start(t, {}, { directory });

    t.is((await listTexts(restored.store, aScope())).length, 3, `cut ${i}`);
    t.true(existsSync(join(directory, aside)), `cut ${i}`);
    t.false(existsSync(join(directory, pending)), `cut ${i}`);
  }
});

for (const [reader, read] of Object.entries({
  start: async (t, directory) => (await SqliteEngine.start(t, {}, { directory })).store.close(),
  check: (_, directory) => inspectStopped(directory, ownMigrations, thorough),
  backup: (t, directory) => copyDatabase(join(directory, 'strata.db'), join(storeDirectory(t), 'copy.db')),
} satisfies Readonly<Record<string, (t: ExecutionContext, directory: string) => unknown>>))
  test(`a ${reader} rolls back the unfinished transaction of a killed first start after a restore`, async (t) => {
    const { directory } = await halfDone(t);

    await read(t, directory);

    t.is(bytesOf(join(directory, 'strata.db-journal')), undefined);
    t.deepEqual(problemsOf(join(directory, 'strata.db')), []);
    t.is((await listTexts((await SqliteEngine.start(t, {}, { directory })).store, aScope())).length, 50);
  });

test('a restore sets the journal aside with the store that it replaces, and it is never applied to another store', async (t) => {
  const { directory, backup } = await halfDone(t);

  const { before } = await restoreStore(backup, directory, restoring);

  t.is(bytesOf(join(directory, 'strata.db-journal')), undefined);
  t.true(bytesOf(`${before}-journal`)! > 0);
  t.deepEqual(problemsOf(join(directory, 'strata.db')), []);
  t.is((await listTexts((await SqliteEngine.start(t, {}, { directory })).store, aScope())).length, 50);
  const again = join(storeDirectory(t), 'again');
  await restoreStore(before!, again, restoring);
  t.is((await listTexts((await SqliteEngine.start(t, {}, { directory: again })).store, aScope())).length, 50);
});

test('a refused restore changes nothing: of an open store, from a damaged copy, from a newer one, from none', async (t) => {
  const engine = await SqliteEngine.start(t);
  await write(engine, 20, 'n', 20_000);
  const directory = storeDirectory(t);
  const backup = join(directory, 'backup.db');
  await copyDatabase(engine.file('strata.db'), backup);
  await t.throwsAsync(restoreStore(backup, engine.directory, restoring), { message: /in use/ });
  t.throws(() => inspectStopped(engine.directory, ownMigrations, thorough), { message: /in use/ });
  await engine.store.close();
  const before = names(engine);
  const spoiled: Readonly<Record<string, (file: string) => void>> = {
    truncated: (file) => truncateSync(file, 100_000),
    flipped: (file) => flip(file, statSync(file).size - 60_000),
    text: (file) => writeFileSync(file, 'no database, but long enough to be taken for one'.repeat(100)),
    newer: (file) => {
      const database = openWriter(file);
      database.pragma('user_version = 999');
      database.close();
    },
    none: (file) => rmSync(file),
    foreign: (file) => {
      rmSync(file);
      const database = openWriter(file);
      database.exec('CREATE TABLE a (b)');
      database.close();
    },
  };

  for (const [name, spoil] of Object.entries(spoiled)) {
    const file = join(directory, name);
    copyFileSync(backup, file);
    spoil(file);
    await t.throwsAsync(restoreStore(file, engine.directory, restoring), { instanceOf: CacheError }, name);
    t.deepEqual(names(engine), before, name);
  }
  t.is((await listTexts((await engine.open()) && engine.store, aScope())).length, 20);
});

test('a server starts on a restored store while another process still reads it', async (t) => {
  const { backup } = await backedUp(t, 2);
  const directory = join(storeDirectory(t), 'data');
  await restoreStore(backup, directory, restoring);
  t.deepEqual(readdirSync(directory).toSorted(), ['strata.db', 'strata.lock']);
  const reader = openReader(join(directory, 'strata.db'));
  t.teardown(() => reader.close());
  reader.exec('BEGIN');
  reader.pragma('schema_version');

  const restored = await SqliteEngine.start(t, {}, { directory });

  await write(restored, 1, 'new');
  t.is((await listTexts(restored.store, aScope())).length, 3);
});

for (const name of ['strata.db.restoring', 'strata.db.restored-20261122T061500Z'])
  test(`a restore of ${name} that a restore which was cut short left there is refused, and leaves it and the store`, async (t) => {
    const { engine, backup } = await backedUp(t, 2);
    await write(engine, 1, 'later');
    await engine.store.close();
    const [left, link] = [join(engine.directory, name), join(storeDirectory(t), 'link')];
    copyFileSync(backup, left);
    symlinkSync(left, link);
    const before = names(engine);

    for (const file of [left, link]) await t.throwsAsync(restoreStore(file, engine.directory, restoring), { message: /was cut short/ });

    t.deepEqual(names(engine), before);
    t.is(Buffer.compare(readFileSync(left), readFileSync(backup)), 0);
  });

test('a restore of the store is refused while an unfinished restore is about to replace it', async (t) => {
  const { engine, backup } = await backedUp(t, 2);
  await write(engine, 1, 'later');
  await engine.store.close();
  copyFileSync(backup, join(engine.directory, 'strata.db.restored-20261122T061500Z'));
  const before = names(engine);

  await t.throwsAsync(restoreStore(join(engine.directory, 'strata.db'), engine.directory, restoring), { message: /would delete or move/ });

  t.deepEqual(names(engine), before);
});

test('a restore into a missing directory creates it', async (t) => {
  const { backup } = await backedUp(t, 2);
  const directory = join(storeDirectory(t), 'new', 'data');

  t.is((await restoreStore(backup, directory, restoring)).before, undefined);

  t.is((await listTexts((await SqliteEngine.start(t, {}, { directory })).store, aScope())).length, 2);
});

test('a check finds faults of the tables that SQLite does not detect', async (t) => {
  const engine = await SqliteEngine.start(t);
  await write(engine, 5);
  await mustWrite(engine.store, aPut({ name: 'with-path' }, 'absent', { path: 'root:acme' }));
  await mustWrite(engine.store, aPut({ name: 'n0' }, 1, { spec: 2 }));
  await engine.store.close();
  const cases: readonly (readonly [string, RegExp])[] = [
    [`UPDATE changes SET body = CAST(replace(CAST(body AS TEXT), 'n1', 'n9') AS BLOB) WHERE revision = 2`, /body of revision 2 is not/],
    [`UPDATE changes SET body = x'7b' WHERE revision = 2`, /body of revision 2 is not/],
    [`UPDATE changes SET body = NULL WHERE revision = 2`, /body of revision 2 is not/],
    [`UPDATE changes SET name = 'n9' WHERE revision = 2`, /revision 2 is not/],
    [
      `UPDATE objects SET digest_low = digest_low + 1 WHERE revision = 2; UPDATE slices SET digest_low = digest_low + 1`,
      /does not match its body/,
    ],
    [`UPDATE objects SET revision = 999 WHERE revision = 2`, /not a put of that object|counts/],
    [`DELETE FROM objects WHERE revision = 2`, /counts/],
    [`UPDATE slices SET objects = objects + 1`, /counts/],
    [`UPDATE slices SET digest_low = digest_low + 1`, /does not match its objects/],
    [`DELETE FROM slices`, /no slice counts/],
    [`UPDATE changes SET replaced = 0 WHERE revision = 7`, /neither current nor replaced/],
    [`UPDATE changes SET kind = 7 WHERE revision = 1`, /not a valid change/],
    [`UPDATE paths SET cluster = 'elsewhere'`, /which has no objects there/],
    [`UPDATE meta SET value = 3 WHERE name = 'revision'`, /log goes up to revision 7/],
    [`UPDATE epochs SET first_revision = 99`, /begins at revision 99/],
  ];
  t.deepEqual(problemsOf(engine.file('strata.db')), []);

  for (const [sql, expected] of cases) {
    const file = join(storeDirectory(t), 'spoiled.db');
    copyFileSync(engine.file('strata.db'), file);
    const database = openWriter(file);
    database.exec(sql);
    database.close();

    t.regex(problemsOf(file).join('\n'), expected, sql);
  }
});

test('a store remembers whether it was closed or left open', async (t) => {
  const engine = await SqliteEngine.start(t);
  await write(engine, 1);
  const directory = killed(t, engine);

  await engine.store.close();

  t.is(isOpenIn(join(directory, 'strata.db')), 1);
  t.is(isOpenIn(engine.file('strata.db')), 0);
});

test('a damaged store that was left open is set aside with its log and never served, and no empty one replaces it by itself', async (t) => {
  const { engine, backup } = await backedUp(t, 50, 20_000);
  const directory = killed(t, engine);
  truncateSync(join(directory, 'strata.db-wal'), 0);
  copyFileSync(backup, join(directory, 'strata.db'));
  const file = join(directory, 'strata.db');
  flip(file, 3 * 8192);
  const bytes = readFileSync(file);
  const start = async (): Promise<DamagedStore> =>
    (await t.throwsAsync(SqliteEngine.start(t, {}, { directory }), { instanceOf: DamagedStore }))!;

  const damaged = await start();

  t.regex(damaged.file, /strata\.db\.damaged-\d{8}T\d{6}Z$/);
  t.is(Buffer.compare(readFileSync(damaged.file), bytes), 0, 'as it was found');
  t.true(existsSync(`${damaged.file}-wal`));
  t.false(existsSync(file));
  t.is((await start()).file, damaged.file, 'nor does the next start begin an empty one');
  t.false(existsSync(file));
  await restoreStore(backup, directory, restoring);
  const restored = await SqliteEngine.start(t, {}, { directory });
  t.is((await listTexts(restored.store, aScope())).length, 50);
  t.true(existsSync(damaged.file), 'it is kept');
});

for (const [what, lose] of [
  ['empty', (file: string) => truncateSync(file, 0)],
  ['gone', (file: string) => rmSync(file)],
] as const)
  test(`a database that is ${what} beside its log is damaged: the log holds acknowledged writes and is never deleted`, async (t) => {
    const { engine, backup } = await backedUp(t, 50, 20_000);
    const directory = killed(t, engine);
    const file = join(directory, 'strata.db');
    const log = readFileSync(`${file}-wal`);
    lose(file);
    if (what === 'empty') {
      t.regex(problemsOf(file).join(), /is empty, but its write-ahead log is not/);
      await t.throwsAsync(copyDatabase(file, join(storeDirectory(t), 'copy.db')), { message: /is empty, but its write-ahead log is not/ });
    }

    for (let starts = 0; starts < 2; starts += 1) {
      const damaged = (await t.throwsAsync(SqliteEngine.start(t, {}, { directory }), { instanceOf: DamagedStore }))!;
      t.is(Buffer.compare(readFileSync(`${damaged.file}-wal`), log), 0);
    }
    await restoreStore(backup, directory, restoring);
    t.is((await listTexts((await SqliteEngine.start(t, {}, { directory })).store, aScope())).length, 50);
  });

test('a restore completes a start that was cut short while setting a damaged store aside: the log stays with that store', async (t) => {
  const { engine, backup } = await backedUp(t, 3);
  const directory = killed(t, engine);
  const damaged = join(directory, 'strata.db.damaged-20261122T061400Z');
  renameSync(join(directory, 'strata.db'), damaged);

  const { before } = await restoreStore(backup, directory, restoring);

  t.is(before, undefined, 'no store was there');
  t.deepEqual(readdirSync(directory).toSorted(), [
    'strata.db',
    'strata.db.damaged-20261122T061400Z',
    'strata.db.damaged-20261122T061400Z-wal',
    'strata.lock',
  ]);
});

test('a store that was set aside with its own log is not given another log', async (t) => {
  const { engine, backup } = await backedUp(t, 3);
  const directory = killed(t, engine);
  const [file, earlier] = [join(directory, 'strata.db'), join(directory, 'strata.db.damaged-20261122T061400Z')];
  renameSync(file, earlier);
  writeFileSync(`${earlier}-wal`, 'the log of the earlier store');
  const log = readFileSync(`${file}-wal`);

  const damaged = (await t.throwsAsync(SqliteEngine.start(t, {}, { directory }), { instanceOf: DamagedStore }))!;

  t.is(damaged.file, earlier);
  t.is(readFileSync(`${earlier}-wal`, 'utf8'), 'the log of the earlier store');
  t.is(Buffer.compare(readFileSync(`${file}-wal`), log), 0);
  await restoreStore(backup, directory, restoring);
  t.is(readFileSync(`${earlier}-wal`, 'utf8'), 'the log of the earlier store');
  t.is(Buffer.compare(readFileSync(join(directory, 'strata.db.replaced-20261122T061500Z-wal')), log), 0, 'it is kept');
});

test('an empty file is not a copy of a store', async (t) => {
  const directory = storeDirectory(t);
  writeFileSync(join(directory, 'strata.db'), '');

  await t.throwsAsync(copyDatabase(join(directory, 'strata.db'), join(directory, 'copy.db')), {
    instanceOf: CacheError,
    message: `${join(directory, 'strata.db')} is empty`,
  });
  t.deepEqual(readdirSync(directory), ['strata.db']);
});

test('once an operator has removed a damaged store, a start may create an empty one', async (t) => {
  const directory = storeDirectory(t);
  writeFileSync(join(directory, 'strata.db'), 'no database, but long enough to be taken for one'.repeat(100));
  const damaged = (await t.throwsAsync(SqliteEngine.start(t, {}, { directory }), { instanceOf: DamagedStore }))!;

  renameSync(damaged.file, join(storeDirectory(t), 'taken-away'));

  t.is((await SqliteEngine.start(t, {}, { directory })).store.revisions.published, 0);
});

test('the log of a newer store beside an older file is detected, not served', async (t) => {
  const engine = await SqliteEngine.start(t);
  await write(engine, 40, 'old', 30_000);
  await engine.store.close();
  const old = join(storeDirectory(t), 'old.db');
  copyFileSync(engine.file('strata.db'), old);
  await engine.open();
  for (let i = 0; i < 40; i += 1) await mustWrite(engine.store, aPut({ name: `old${i}` }, i + 1, { spec: 'y'.repeat(60_000) }));
  await engine.restart();
  await write(engine, 40, 'new', 40_000);
  const directory = killed(t, engine);
  copyFileSync(old, join(directory, 'strata.db'));

  await t.throwsAsync(SqliteEngine.start(t, {}, { directory }), { instanceOf: DamagedStore });
});

test('a first start that was cut short before there was a schema starts over', async (t) => {
  const directory = storeDirectory(t);
  openWriter(join(directory, 'strata.db')).close();
  t.true(statSync(join(directory, 'strata.db')).size > 0);

  const engine = await SqliteEngine.start(t, {}, { directory });

  t.is(engine.store.revisions.published, 0);
});

test('a store that meets damage while it runs stops, wherever the damage is, and the next start sets it aside', async (t) => {
  const meet: Readonly<Record<string, (engine: SqliteEngine) => Promise<unknown>>> = {
    reading: (engine) => listTexts(engine.store, aScope()),
    writing: (engine) => engine.store.writer.submit(aPut({ name: 'one-more' }, 'absent')),
  };
  for (const [name, act] of Object.entries(meet)) {
    const engine = await SqliteEngine.start(t);
    await write(engine, 300, 'n', 3_000);
    await engine.restart();
    const { failed } = engine.store;
    const bytes = statSync(engine.file('strata.db')).size;
    for (let at = 8192; at + 8192 <= bytes; at += 8192) flip(engine.file('strata.db'), at);

    await t.notThrowsAsync(Promise.race([act(engine).catch(() => {}), failed]), name);

    t.regex((await failed).message, /the store is damaged/, name);
    await engine.store.close();
    await t.throwsAsync(engine.open(), { instanceOf: DamagedStore }, name);
  }
});

test('a store that is larger than a start may check is not checked, and the log says so', async (t) => {
  const engine = await SqliteEngine.start(t);
  await write(engine, 5);
  const directory = killed(t, engine);
  const events: string[] = [];
  const note = (event: string): void => void events.push(event);
  const log = { debug: note, info: note, warn: note, error: note, child: () => log };

  const first = await SqliteEngine.start(t, { startCheckBytesMax: 10 }, { directory, log });
  const copy = killed(t, first);
  await first.store.close();
  await SqliteEngine.start(t, {}, { directory: copy, log });
  await first.open();

  t.deepEqual(
    events.filter((event) => event.includes('checked')),
    ['store.not-checked', 'store.checked'],
    'after a clean stop nothing is checked',
  );
});

test('only the copy from before the last migration is kept', async (t) => {
  const engine = await SqliteEngine.start(t);
  await engine.store.close();
  rmSync(engine.file('strata.db'));
  const steps = join(storeDirectory(t), 'migrations');
  mkdirSync(steps);
  const all = readdirSync(ownMigrations).toSorted();
  for (const name of all.slice(0, 3)) copyFileSync(join(ownMigrations, name), join(steps, name));
  const database = openWriter(engine.file('strata.db'));
  migrate(database, steps);
  database.exec(`INSERT INTO meta VALUES ('revision', 0), ('compacted', 0), ('tombstones_from', 0), ('log_bytes', 0), ('cache_id', 'c')`);
  database.close();
  writeFileSync(engine.file('strata.db') + '.schema-2', 'an older one');

  await engine.open();

  t.is(knownSchema(ownMigrations), all.length);
  t.deepEqual(
    names(engine).filter((name) => name.includes('schema')),
    ['strata.db.schema-3'],
  );
  t.is(inspect(`${engine.file('strata.db')}.schema-3`, ownMigrations, thorough).schema, 3);
  t.is(engine.store.cacheId, 'c');
  await engine.restart();
  t.true(existsSync(`${engine.file('strata.db')}.schema-3`));
});

test('a migration without room for a copy does not begin', async (t) => {
  const engine = await SqliteEngine.start(t);
  await engine.store.close();
  const database = openWriter(engine.file('strata.db'));
  database.pragma(`user_version = ${knownSchema(ownMigrations) - 1}`);
  database.close();
  mkdirSync(`${engine.file('strata.db')}.schema-${knownSchema(ownMigrations) - 1}.partial`);
  chmodSync(engine.directory, 0o700);

  await t.throwsAsync(engine.open());

  const after = openWriter(engine.file('strata.db'));
  t.is(after.pragma('user_version', { simple: true }), knownSchema(ownMigrations) - 1);
  after.close();
});
