/** How far the files of an open store shrink when most objects are deleted. On the real clock. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { openReader, type Connection } from '../../../src/store/sqlite/database.js';
import type { SqliteStore } from '../../../src/store/sqlite/store.js';
import { aDelete, aPut } from '../../support/objects.js';
import { openTestStore, storeDirectory, storeLimits, write } from '../../support/test-store.js';

const mebibyte = 1024 * 1024;
const objects = 4_000;
const batch = 500;
/**
 * The size of the remaining objects: 20 kB each in pages of 8 KiB, and 1 MiB for the tombstones of
 * all others.
 */
const heldMiB = (objects / 10) * 0.024 + 1;
/**
 * An eighth of the database may stay free, but at least 8 MiB, which is more here. Both files
 * together may be 24 MiB longer.
 */
const promisedMiB = heldMiB + 8 + 24;
/** Longer than any machine takes. The benchmark measures the speed. */
const withinMs = 45_000;

type Full = Readonly<{ store: SqliteStore; reader: Connection; filesMiB: () => number }>;

/** A store of 4,000 objects of 20 kB, with hardly any history. */
async function aFullStore(t: ExecutionContext): Promise<Full> {
  const directory = storeDirectory(t);
  const store = await openTestStore(directory, { history: { ...storeLimits.history, historyChangesMax: 100 } });
  const reader = openReader(join(directory, 'strata.db'));
  t.teardown(async () => (reader.close(), await store.close()));
  const spec = 'x'.repeat(20_000);
  const put = (i: number): Promise<unknown> => write(store, aPut({ name: `n${i}` }, 'absent', { spec }));
  for (let i = 0; i < objects; i += batch) await Promise.all(Array.from({ length: batch }, (_, at) => put(i + at)));
  const filesMiB = (): number =>
    ['strata.db', 'strata.db-wal'].reduce((sum, name) => sum + statSync(join(directory, name)).size, 0) / mebibyte;
  return { store, reader, filesMiB };
}

async function deleteMost(store: SqliteStore): Promise<void> {
  const most = Array.from({ length: objects }, (_, i) => i).filter((i) => i % 10 !== 0);
  await Promise.all(most.map((i) => write(store, aDelete({ name: `n${i}` }))));
}

async function given(isSmall: () => boolean): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (!isSmall() && performance.now() < untilMs) await sleep(20);
}

largeTest('when nine of ten objects are deleted, the files shrink, even if nothing is written any more', async (t) => {
  const { store, reader, filesMiB } = await aFullStore(t);
  const before = filesMiB();

  await deleteMost(store);
  const startedMs = performance.now();
  await given(() => filesMiB() < promisedMiB);

  const free = Number(reader.pragma('freelist_count', { simple: true })) * 8192;
  t.log(`${before.toFixed(1)} MiB before, ${filesMiB().toFixed(1)} MiB after ${(performance.now() - startedMs).toFixed(0)} ms`);
  t.true(before > 2 * promisedMiB, 'there was something to give back');
  t.true(filesMiB() < promisedMiB, `${filesMiB()} MiB`);
  t.true(free <= 8 * mebibyte, `${free} bytes are free in the database`);
});

test('a reader that pins the log delays that only until it has finished', async (t) => {
  const { store, reader, filesMiB } = await aFullStore(t);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM objects').get();
  await deleteMost(store);
  await sleep(1_500);
  const held = filesMiB();

  reader.exec('COMMIT');
  await given(() => filesMiB() < promisedMiB);

  t.log(`${held.toFixed(1)} MiB beside it, ${filesMiB().toFixed(1)} MiB after it`);
  t.true(held > promisedMiB, 'the reader must pin the files');
  t.true(filesMiB() < promisedMiB, `${filesMiB()} MiB`);
});
