/** What a store takes itself for when it starts: the same one as before, or one that may have been rolled back (D2, F17, F27). */
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { openWriter } from '../../src/store/sqlite/database.js';
import { begin } from '../../src/store/sqlite/life.js';
import { readWitness, wasRolledBack } from '../../src/store/sqlite/witness.js';
import { changesBehind, listTexts, mustWrite } from '../contract/read-all.js';
import { aPut, aScope } from '../support/objects.js';
import { SqliteEngine, type Surroundings } from './sqlite-engine.js';

const epochOf = (resourceVersion: string): number => Number(resourceVersion.slice(0, 7));

/** Writes objects until the store has come to `revision`; answers the versions that were acknowledged. */
async function writeUpTo({ store }: SqliteEngine, revision: number, tag = ''): Promise<string[]> {
  const texts: string[] = [];
  while (store.published < revision)
    texts.push((await mustWrite(store, aPut({ name: `n${store.published}${tag}` }, 'absent'))).resourceVersion);
  return texts;
}

const nextVersion = async ({ store }: SqliteEngine): Promise<string> =>
  (await mustWrite(store, aPut({ name: `next${store.published}` }, 'absent'))).resourceVersion;

/** An engine that has written ten objects, a copy of its database then, and ten more. */
async function aBackup(t: ExecutionContext, surroundings: Surroundings = {}) {
  const engine = await SqliteEngine.start(t, {}, surroundings);
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

test('a store is born with a random epoch of 7 digits', async (t) => {
  const engine = await SqliteEngine.start(t, {}, { random: () => 0.5 });

  t.is(epochOf(engine.store.format(0)), 4_500_000);
});

test('after a clean stop the database file alone is the whole store', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 50);

  await engine.store.close();

  const elsewhere = mkdtempSync(join(tmpdir(), 'strata-store-'));
  for (const name of ['strata.db', 'strata.witness'] as const) copyFileSync(engine.file(name), join(elsewhere, name));
  const copy = await SqliteEngine.start(t, {}, { directory: elsewhere });
  t.is(copy.store.published, 50);
  t.is(copy.store.format(50), texts.at(-1)!);
});

test('a clean restart keeps the epoch', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 3);

  for (let i = 0; i < 3; i++) await engine.restart();

  t.is(epochOf(await nextVersion(engine)), epochOf(texts[0]!));
});

test('a start that is cut short between the two nonces keeps the epoch, however often', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 3);
  await engine.store.close();

  for (let i = 0; i < 3; i++) {
    const database = openWriter(engine.file('strata.db'));
    t.false(begin(database, readWitness(engine.file('strata.witness')), `cut short ${i}`, Math.random).rolledBack, `time ${i}`);
    database.close();
  }

  await engine.open();
  t.is(epochOf(await nextVersion(engine)), epochOf(texts[0]!));
});

test('an older database under a witness of later writes begins a higher epoch; what was lost is not ours, the common part still is', async (t) => {
  const { engine, kept, lost, restore } = await aBackup(t);

  restore();
  const store = await engine.open();

  t.is(store.published, 10);
  t.deepEqual(
    lost.map((text) => store.locate(text).kind),
    lost.map(() => 'above'),
  );
  const again = await writeUpTo(engine, 25, 'again');
  t.true(epochOf(again[0]!) > epochOf(lost[0]!));
  t.deepEqual(
    lost.map((text) => store.locate(text).kind),
    lost.map(() => 'below'),
  );
  t.deepEqual(
    kept.map((text) => store.locate(text)),
    kept.map((_, i) => ({ kind: 'ours', revision: i + 1 })),
  );
  t.deepEqual(
    [...kept, ...lost, ...again].map(BigInt),
    [...kept, ...lost, ...again].map(BigInt).toSorted((a, b) => (a < b ? -1 : 1)),
    'versions never fall',
  );
  t.is((await changesBehind(store, aScope(), 5)).length, 20);
  t.true((await listTexts(store, aScope(), { revision: 7 })).length === 7);
  await engine.restart();
  t.is(engine.store.format(25), again.at(-1)!);
  t.is(engine.store.format(10), kept.at(-1)!);
});

test('the same backup restored twice begins a higher epoch each time, whatever the dice say', async (t) => {
  let dice = 0.5;
  const { engine, lost, restore } = await aBackup(t, { random: () => dice });

  dice = 0.9;
  restore();
  await engine.open();
  const first = await writeUpTo(engine, 15, 'first');
  await engine.store.close();
  dice = 0;
  restore();
  await engine.open();
  const second = await writeUpTo(engine, 15, 'second');

  t.true(epochOf(first[0]!) > epochOf(lost[0]!));
  t.true(epochOf(second[0]!) > epochOf(first[0]!));
  t.is(engine.store.locate(first[0]!).kind, 'below');
});

test('a database without its witness, or with one that says nothing, may be any copy and begins a new epoch', async (t) => {
  for (const spoil of [
    (file: string) => rmSync(file),
    (file: string) => writeFileSync(file, ''),
    (file: string) => writeFileSync(file, 'x y z'),
  ]) {
    const engine = await SqliteEngine.start(t);
    const texts = await writeUpTo(engine, 3);
    await engine.store.close();

    spoil(engine.file('strata.witness'));
    await engine.open();

    t.true(epochOf(await nextVersion(engine)) > epochOf(texts[0]!));
    t.is(engine.store.locate(texts[2]!).kind, 'ours');
    await engine.restart();
    t.is(epochOf(await nextVersion(engine)), epochOf(engine.store.format(4)), 'once, not with every start');
  }
});

test('a database that is copied elsewhere is another store from there on, and the original stays what it is', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 3);
  await engine.store.close();
  const elsewhere = mkdtempSync(join(tmpdir(), 'strata-store-'));
  copyFileSync(engine.file('strata.db'), join(elsewhere, 'strata.db'));

  const copy = await SqliteEngine.start(t, {}, { directory: elsewhere });
  await engine.open();

  t.is(epochOf(await nextVersion(engine)), epochOf(texts[0]!));
  t.true(epochOf(await nextVersion(copy)) > epochOf(texts[0]!));
});

test('a database under the witness of another store begins an epoch above both', async (t) => {
  const [low, high] = [await SqliteEngine.start(t, {}, { random: () => 0.1 }), await SqliteEngine.start(t, {}, { random: () => 0.7 })];
  const texts = [await writeUpTo(low, 3), await writeUpTo(high, 3)].flat();
  for (const engine of [low, high]) await engine.store.close();

  copyFileSync(high.file('strata.witness'), low.file('strata.witness'));
  await low.open();

  const version = await nextVersion(low);
  for (const text of texts) t.true(BigInt(version) > BigInt(text));
});

test('a wiped database is born anew above what its witness has seen, and knows nothing of before (F17)', async (t) => {
  const engine = await SqliteEngine.start(t, {}, { random: () => 0.9 });
  const texts = await writeUpTo(engine, 5);
  await engine.store.close();

  for (const suffix of ['', '-wal', '-shm']) rmSync(engine.file('strata.db') + suffix, { force: true });
  await engine.open();

  t.is(engine.store.published, 0);
  t.deepEqual(
    texts.map((text) => engine.store.locate(text).kind),
    texts.map(() => 'below'),
  );
  t.true(epochOf(engine.store.format(0)) > epochOf(texts[0]!));
});

test('a log that lost its tail is a valid prefix, and begins a new epoch (F3, F5)', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 40);
  const elsewhere = mkdtempSync(join(tmpdir(), 'strata-store-'));
  cpSync(engine.directory, elsewhere, { recursive: true });
  const wal = join(elsewhere, 'strata.db-wal');

  truncateSync(wal, statSync(wal).size - 20_000);
  const copy = await SqliteEngine.start(t, {}, { directory: elsewhere });

  const { published } = copy.store;
  t.true(published > 0 && published < 40, `at ${published}`);
  t.is((await listTexts(copy.store, aScope())).length, published);
  t.deepEqual(copy.store.locate(texts[published - 1]!), { kind: 'ours', revision: published });
  t.is(copy.store.locate(texts[published]!).kind, 'above');
  t.true(epochOf(await nextVersion(copy)) > epochOf(texts[0]!));
});

test('the witness says what is published, in one line of fixed length', async (t) => {
  const engine = await SqliteEngine.start(t);
  const texts = await writeUpTo(engine, 12);

  const testimony = readWitness(engine.file('strata.witness'));

  t.like(testimony, { revision: 12, epoch: epochOf(texts[0]!) });
  t.is(readFileSync(engine.file('strata.witness'), 'utf8').length, 64);
  t.is(readWitness(join(engine.directory, 'nothing')), undefined);
});

test('who was rolled back: a table', (t) => {
  const store = { nonce: 'b', previousNonce: 'a', revision: 10 };
  const witness = (nonce: string, revision: number) => ({ nonce, revision, epoch: 1 });

  t.false(wasRolledBack(store, witness('b', 10)));
  t.false(wasRolledBack(store, witness('b', 9)), 'the witness may lag');
  t.true(wasRolledBack(store, witness('b', 11)));
  t.false(wasRolledBack(store, witness('a', 10)), 'cut short before the witness had the new nonce');
  t.true(wasRolledBack(store, witness('a', 11)));
  t.true(wasRolledBack(store, witness('c', 1)));
  t.true(wasRolledBack(store, undefined));
});
