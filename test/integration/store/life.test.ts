/** How a store starts: each start begins a new epoch, whatever the disk holds (F17, F27). */
import { copyFileSync, cpSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { openWriter } from '../../../src/store/sqlite/database.js';
import { Committer } from '../../../src/store/sqlite/committer.js';
import { SqliteRevisions } from '../../../src/store/sqlite/revisions.js';
import { begin, readEpochs } from '../../../src/store/sqlite/life.js';
import { changesBehind, listTexts, mustWrite } from '../../contract/read-all.js';
import { aDelete, aPut, aScope } from '../../support/objects.js';
import { aWritingHalf } from '../../support/store/a-database.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';

const epochOf = (resourceVersion: string): number => Number(resourceVersion.slice(0, 9));

/**
 * Writes objects until the store has reached `revision`; returns the acknowledged resourceVersions.
 */
async function writeUpTo({ store }: SqliteEngine, revision: number, tag = ''): Promise<string[]> {
  const texts: string[] = [];
  while (store.revisions.published < revision)
    texts.push((await mustWrite(store, aPut({ name: `n${store.revisions.published}${tag}` }, 'absent'))).resourceVersion);
  return texts;
}

const nextVersion = async ({ store }: SqliteEngine): Promise<string> =>
  (await mustWrite(store, aPut({ name: `next${store.revisions.published}` }, 'absent'))).resourceVersion;

function epochsIn(engine: SqliteEngine): number[] {
  const database = openWriter(engine.file('strata.db'));
  const epochs = database.prepare<[], number>('SELECT epoch FROM epochs ORDER BY epoch').pluck().all();
  database.close();
  return epochs;
}

/**
 * An engine that wrote ten objects, a copy of its database at that time, and ten more objects of
 * another epoch.
 */
async function aBackup(t: ExecutionContext) {
  const engine = await SqliteEngine.start(t);
  const kept = await writeUpTo(engine, 10);
  await engine.store.close();
  const backup = `${engine.file('strata.db')}.backup`;
  copyFileSync(engine.file('strata.db'), backup);
  await engine.open();
  const lost = await writeUpTo(engine, 20);
  await engine.store.close();
  const restore = (): void => {
    for (const suffix of ['-wal', '-shm']) rmSync(engine.file('strata.db') + suffix, { force: true });
    copyFileSync(backup, engine.file('strata.db'));
  };
  return { engine, kept, lost, restore };
}

test('after a clean stop the database file alone is the whole store', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 50);

  await engine.store.close();

  const elsewhere = mkdtempSync(join(tmpdir(), 'strata-store-'));
  copyFileSync(engine.file('strata.db'), join(elsewhere, 'strata.db'));
  const copy = await SqliteEngine.start(t, {}, { directory: elsewhere });
  t.is(copy.store.revisions.published, 50);
  t.is(copy.store.revisions.format(50), texts.at(-1)!);
});

test('moments that lie in the future because a clock was set back are moved to the time at which the store opens', async (t) => {
  const engine = await SqliteEngine.start(t);
  await writeUpTo(engine, 10);
  await engine.store.close();
  const database = openWriter(engine.file('strata.db'));
  t.teardown(() => database.close());
  const latest = (sql: string): number => Number(database.prepare(sql).pluck().get());
  const notedMs = latest('SELECT max(at_ms) FROM moments');

  begin(database, { nowMs: notedMs - 3_600_000, random: () => 0.5 });

  t.is(latest('SELECT max(at_ms) FROM moments'), notedMs - 3_600_000);
  t.is(latest('SELECT max(changed_ms) FROM slices'), notedMs - 3_600_000);
});

test('every start begins an epoch, and every earlier resourceVersion stays as it was', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = [engine.store.revisions.format(0)];

  for (let i = 0; i < 4; i++) {
    texts.push(await nextVersion(engine), await nextVersion(engine));
    await engine.restart();
  }

  t.is(new Set(texts.slice(1).map(epochOf)).size, 4);
  t.deepEqual(
    texts.map((text) => engine.store.revisions.locate(text)),
    texts.map((_, revision) => ({ kind: 'ours', revision })),
  );
  t.deepEqual(
    texts.map((_, revision) => engine.store.revisions.format(revision)),
    texts,
  );
  t.is((await changesBehind(engine.store, aScope(), 3)).length, 5);
});

test('an epoch in which nothing was written leaves no row behind, however often the store starts', async (t) => {
  const engine = await SqliteEngine.start(t);
  const born = engine.store.revisions.format(0);
  for (let i = 0; i < 3; i++) await engine.restart();
  t.deepEqual(engine.store.revisions.locate(born), { kind: 'ours', revision: 0 }, 'an empty store has a version too');
  t.is(epochsIn(engine).length, 2);
  const written = await nextVersion(engine);

  for (let i = 0; i < 5; i++) await engine.restart();

  t.is(epochsIn(engine).length, 3, 'of the creation, of the change, and of now');
  t.is(engine.store.revisions.format(1), written);
  t.true(engine.store.epoch > epochOf(written));
});

test('an epoch is dropped once nothing of it is left, and its versions are then refused as too old', (t) => {
  const { database, commit } = aWritingHalf(t);
  const start = (): ReturnType<typeof begin> => begin(database, { nowMs: 0, random: () => 0 });
  const epochs = (): number[] => start().epochs.map(({ firstRevision }) => firstRevision);
  commit(aPut({ name: 'stays' }, 'absent'));
  start();
  commit(aPut({ name: 'goes' }, 'absent'));
  start();
  commit(aDelete({ name: 'goes' }));
  start();
  commit(aPut({ name: 'last' }, 'absent'));
  t.deepEqual(epochs(), [1, 2, 3, 4, 5]);

  database.exec(`DELETE FROM changes WHERE revision IN (2, 3); UPDATE meta SET value = 3 WHERE name = 'tombstones_from'`);

  t.deepEqual(epochs(), [1, 3, 4, 5], 'a client that has seen revision 3 can still receive what was deleted since');
  database.exec(`UPDATE meta SET value = 4 WHERE name = 'tombstones_from'`);
  t.deepEqual(epochs(), [1, 4, 5], 'the first holds an object, which keeps its version');
});

test('before a counter could overflow, the next commit begins another epoch, and versions keep increasing', (t) => {
  const { database, commit } = aWritingHalf(t);
  const first = commit(aPut({ name: 'first' }, 'absent'));
  database.exec(`UPDATE epochs SET nonce = 9998999999`);
  const committer = new Committer(database, { momentIntervalMs: 60_000, keptNames: new Map() });

  const second = committer.commit([aPut({ name: 'second' }, 'absent')], 1_000_000);
  const third = committer.commit([aPut({ name: 'third' }, 'absent')], 1_000_000);

  t.deepEqual([first.begun, second.begun?.firstRevision, third.begun], [undefined, 2, undefined]);
  const revisions = new SqliteRevisions({ epochs: readEpochs(database), revision: 3, compacted: 0 });
  const texts = [1, 2, 3].map((revision) => revisions.format(revision));
  t.deepEqual(
    texts.map((text) => revisions.locate(text)),
    [1, 2, 3].map((revision) => ({ kind: 'ours', revision })),
  );
  t.deepEqual(texts.toSorted(), texts);
  t.is(texts[0]!.slice(9), '9999000000');
});

test('a restored older database begins a higher epoch than any before; lost versions are foreign, common ones stay valid', async (t) => {
  const { engine, kept, lost, restore } = await aBackup(t);

  restore();
  const store = await engine.open();

  t.is(store.revisions.published, 10);
  t.true(lost.every((text) => store.revisions.locate(text).kind !== 'ours'));
  const again = await writeUpTo(engine, 25, 'again');
  t.notDeepEqual(new Set(again.map(epochOf)), new Set(lost.map(epochOf)));
  t.true(lost.every((text) => store.revisions.locate(text).kind !== 'ours'));
  t.deepEqual(
    kept.map((text) => store.revisions.locate(text)),
    kept.map((_, i) => ({ kind: 'ours', revision: i + 1 })),
  );
  t.is((await changesBehind(store, aScope(), 5)).length, 20);
  t.true((await listTexts(store, aScope(), { revision: 7 })).length === 7);
  await engine.restart();
  t.is(engine.store.revisions.format(25), again.at(-1)!);
  t.is(engine.store.revisions.format(10), kept.at(-1)!);
});

test('when a backup is restored repeatedly within a second, no epoch reuses the versions of another', async (t) => {
  const { engine, lost, restore } = await aBackup(t);
  const versions = [lost];

  for (let i = 0; i < 5; i++) {
    restore();
    await engine.open();
    versions.push(await writeUpTo(engine, 15, `turn ${i}`));
    for (const others of versions.slice(0, -1)) t.true(others.every((text) => engine.store.revisions.locate(text).kind !== 'ours'));
    await engine.store.close();
  }
});

test('a database that is copied elsewhere becomes another store', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 3);
  await engine.store.close();
  const elsewhere = mkdtempSync(join(tmpdir(), 'strata-store-'));
  copyFileSync(engine.file('strata.db'), join(elsewhere, 'strata.db'));

  const copy = await SqliteEngine.start(t, {}, { directory: elsewhere });
  await engine.open();
  const [here, there] = [await nextVersion(engine), await nextVersion(copy)];

  t.not(here, there);
  t.not(copy.store.revisions.locate(here).kind, 'ours');
  t.not(engine.store.revisions.locate(there).kind, 'ours');
  for (const { store } of [engine, copy]) t.is(store.revisions.locate(texts[2]!).kind, 'ours');
});

test('a wiped database is a new store, and knows nothing of the former', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 5);
  await engine.store.close();

  for (const suffix of ['', '-wal', '-shm']) rmSync(engine.file('strata.db') + suffix, { force: true });
  await engine.open();

  t.is(engine.store.revisions.published, 0);
  t.true(texts.every((text) => engine.store.revisions.locate(text).kind !== 'ours'));
});

test('a log that lost its tail is a valid prefix, and the lost versions are foreign, also after new writes', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 40);
  const elsewhere = mkdtempSync(join(tmpdir(), 'strata-store-'));
  cpSync(engine.directory, elsewhere, { recursive: true });
  const wal = join(elsewhere, 'strata.db-wal');

  truncateSync(wal, statSync(wal).size - 20_000);
  const copy = await SqliteEngine.start(t, {}, { directory: elsewhere });

  const { published } = copy.store.revisions;
  t.true(published > 0 && published < 40, `at ${published}`);
  t.is((await listTexts(copy.store, aScope())).length, published);
  await writeUpTo(copy, 50, 'again');
  t.deepEqual(copy.store.revisions.locate(texts[published - 1]!), { kind: 'ours', revision: published });
  for (const text of texts.slice(published)) t.not(copy.store.revisions.locate(text).kind, 'ours');
});
