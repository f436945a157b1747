/** What readers may cost: the write-ahead log (F28), and snapshots from before many deletes. */
import { statSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { openReader } from '../../src/store/sqlite/database.js';
import { Refused } from '../../src/domain/errors.js';
import { changesBehind, list, listTexts, mustWrite } from '../contract/read-all.js';
import { aDelete, aPut, aScope } from '../support/objects.js';
import { SqliteEngine } from './sqlite-engine.js';

const mebibyte = 1024 * 1024;

test('the write-ahead log stays small while many read: no page of a list and no chunk of history pins it (F28)', async (t) => {
  const engine = await SqliteEngine.start(t, { snapshot: { rowsMax: 20 } });
  const { store } = engine;
  for (let i = 0; i < 200; i++) await mustWrite(store, aPut({ name: `old${i}` }, 'absent'));
  let writing = true;
  let walBytesMax = 0;
  let reads = 0;
  const body = 'x'.repeat(50_000);
  const writer = async (): Promise<void> => {
    for (let round = 0; round < 40; round++) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => mustWrite(store, aPut({ name: `n${round}-${i}` }, 'absent', { spec: body }))));
      walBytesMax = Math.max(walBytesMax, statSync(engine.file('strata.db-wal')).size);
    }
    writing = false;
  };
  const revision = store.published;
  // Lists that are read page by page and never come to their end while the writer is at work.
  const slowReader = async (): Promise<void> => {
    while (writing) {
      await listTexts(store, aScope(), { revision, between: () => turn() });
      reads += 1;
    }
  };
  const historian = async (): Promise<void> => {
    while (writing) {
      for await (const chunk of store.changes(aScope(), { after: 0, upTo: revision })) reads += chunk.length > 0 ? 1 : 0;
    }
  };

  await Promise.all([writer(), ...Array.from({ length: 10 }, slowReader), ...Array.from({ length: 5 }, historian)]);

  t.log(`${reads} reads beside 100 MB of writes; the log grew to ${(walBytesMax / mebibyte).toFixed(1)} MiB`);
  t.true(reads > 20);
  t.true(walBytesMax < 64 * mebibyte, `${(walBytesMax / mebibyte).toFixed(1)} MiB`);
});

test('when most objects are deleted, the file becomes small again (S14)', async (t) => {
  const engine = await SqliteEngine.start(t, { history: { historyChangesMax: 100 } });
  const { store } = engine;
  const spec = 'x'.repeat(20_000);
  for (let i = 0; i < 2000; i++) void store.submit(aPut({ name: `n${i}` }, 'absent', { spec }));
  await mustWrite(store, aPut({ name: 'end' }, 'absent'));
  const pages = (): number => {
    const reader = openReader(engine.file('strata.db'));
    const count = Number(reader.pragma('page_count', { simple: true }));
    reader.close();
    return count;
  };
  const full = pages();

  for (let i = 0; i < 1800; i++) void store.submit(aDelete({ name: `n${i}` }));
  await mustWrite(store, aDelete({ name: 'end' }));
  await engine.compact();
  const left = pages();
  await store.close();
  const bytes = statSync(engine.file('strata.db')).size;

  t.log(`${full} pages of 2,000 objects, ${left} of 200, ${(bytes / mebibyte).toFixed(1)} MiB`);
  // An eighth of the file, and 8 MiB, may be free.
  t.true(left < full * 0.1 + 100 * 3 + 1024 + 100, `${left} pages`);
  t.true(bytes < 20 * mebibyte, `${bytes} bytes`);
});

test('a snapshot from before more deletes than one tick looks at is exact, and deletes of other types do not count', async (t) => {
  const { store } = await SqliteEngine.start(t, { snapshot: { resurrectedMax: 10 } });
  for (let i = 0; i < 10; i++) void store.submit(aPut({ name: `n${i}` }, 'absent'));
  for (let i = 0; i < 4500; i++) void store.submit(aPut({ name: `n${i}`, resource: 'others' }, 'absent'));
  const { revision } = await mustWrite(store, aPut({ name: 'last' }, 'absent'));
  const expected = await listTexts(store, aScope());
  for (let i = 0; i < 4500; i++) void store.submit(aDelete({ name: `n${i}`, resource: 'others' }));
  for (let i = 0; i < 10; i++) void store.submit(aDelete({ name: `n${i}` }));
  await mustWrite(store, aPut({ name: 'n0' }, 'absent'));

  let turns = 0;
  let next = setImmediate(function count() {
    turns += 1;
    next = setImmediate(count);
  });
  const found = await listTexts(store, aScope(), { revision });
  clearImmediate(next);

  t.true(turns >= 2, 'the event loop got its turns meanwhile');
  t.deepEqual(found, expected);
  t.is(found.length, 11);
});

test('a snapshot from before more deletes of its scope than are remembered is given up', async (t) => {
  const { store } = await SqliteEngine.start(t, { snapshot: { resurrectedMax: 10 } });
  for (let i = 0; i < 11; i++) await mustWrite(store, aPut({ name: `n${i}` }, 'absent'));
  const revision = store.published;
  for (let i = 0; i < 11; i++) await mustWrite(store, aDelete({ name: `n${i}` }));

  await t.throwsAsync(list(store, aScope(), { revision }), { instanceOf: Refused, message: /more than 10 objects were deleted since/ });
  t.is((await list(store, aScope())).length, 0);
  t.is((await changesBehind(store, aScope(), revision)).length, 11);
});

test('a snapshot that is held too long is given up once it is compacted away, never shown in part (F24)', async (t) => {
  const engine = await SqliteEngine.start(t, { history: { historyChangesMax: 500 }, snapshot: { rowsMax: 5 }, snapshotHoldMs: 60_000 });
  const { store, clock } = engine;
  for (let i = 0; i < 20; i++) await mustWrite(store, aPut({ name: `n${String(i).padStart(2, '0')}` }, 'absent'));
  const snapshot = store.snapshot(aScope(), store.published);
  const { next } = await snapshot.page(undefined);
  for (let i = 0; i < 20; i++) await mustWrite(store, aDelete({ name: `n${String(i).padStart(2, '0')}` }));
  for (let i = 0; i < 482; i++) void store.submit(aPut({ name: `m${i}` }, 'absent'));
  await mustWrite(store, aPut({ name: 'end' }, 'absent'));
  await engine.compact();
  t.is(store.compacted, 20);

  clock.advance(60_000);
  await engine.compact();

  t.is(store.compacted, store.published - 500);
  await t.throwsAsync(snapshot.page(next), { instanceOf: Refused, message: /too old resource version/ });
  snapshot.close();
});
