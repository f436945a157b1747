/**
 * What readers may cost: the size of the write-ahead log (F28), and the time for snapshots from
 * before many deletes.
 */
import { statSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { Refused } from '../../../src/domain/errors.js';
import { changesBehind, listTexts, mustWrite } from '../../contract/read-all.js';
import { aDelete, aPut, aScope } from '../../support/objects.js';
import { aClaim, anUpsert, mustPush } from '../../support/pushes.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';

const mebibyte = 1024 * 1024;

largeTest('the write-ahead log stays small while many read: no page of a list and no chunk of history pins it', async (t) => {
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
  const revision = store.revisions.published;
  // Reads lists page by page until the writer has finished.
  const slowReader = async (): Promise<void> => {
    while (writing) {
      await listTexts(store, aScope(), { revision, between: () => turn() });
      reads += 1;
    }
  };
  const historian = async (): Promise<void> => {
    while (writing) {
      reads += (await changesBehind(store, aScope(), 0, revision)).length > 0 ? 1 : 0;
      await turn();
    }
  };

  await Promise.all([writer(), ...Array.from({ length: 10 }, slowReader), ...Array.from({ length: 5 }, historian)]);

  t.log(`${reads} reads beside 100 MB of writes; the log grew to ${(walBytesMax / mebibyte).toFixed(1)} MiB`);
  t.true(reads > 20);
  t.true(walBytesMax < 64 * mebibyte, `${(walBytesMax / mebibyte).toFixed(1)} MiB`);
});

largeTest('a snapshot from before more deletes than fit into one bucket of the log is exact', async (t) => {
  const { store } = await SqliteEngine.start(t);
  for (let i = 0; i < 3000; i++) void store.writer.submit(aPut({ name: `n${i}`, cluster: `c${i % 3}` }, 'absent'));
  const { revision } = await mustWrite(store, aPut({ name: 'last' }, 'absent'));
  const scopes = [aScope(), aScope({ cluster: 'c1' }), aScope({ shard: 'amber' }), aScope({ shard: 'amber', cluster: 'c2' })];
  const expected = await Promise.all(scopes.map((scope) => listTexts(store, scope)));
  for (let i = 0; i < 3000; i += 2) void store.writer.submit(aDelete({ name: `n${i}`, cluster: `c${i % 3}` }));
  // Two buckets of deletes: of keys that did not exist at the snapshot, and of others.
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 3000; i++) void store.writer.submit(aPut({ name: `n${i}-later`, cluster: `c${i % 3}` }, 'absent'));
    for (let i = 0; i < 3000; i++) void store.writer.submit(aDelete({ name: `n${i}-later`, cluster: `c${i % 3}` }));
    await mustWrite(store, aPut({ name: `end${round}` }, 'absent'));
  }
  for (let i = 0; i < 3000; i += 4) void store.writer.submit(aPut({ name: `n${i}`, cluster: `c${i % 3}` }, 'absent'));
  for (let i = 1; i < 3000; i += 4) void store.writer.submit(aDelete({ name: `n${i}`, cluster: `c${i % 3}` }));
  await mustWrite(store, aPut({ name: 'end' }, 'absent'));

  for (const [i, scope] of scopes.entries()) t.deepEqual(await listTexts(store, scope, { revision }), expected[i]);
});

largeTest('an object that changed very often does not slow down a list of its past', async (t) => {
  const { store } = await SqliteEngine.start(t);
  let { revision } = await mustWrite(store, aPut({ name: 'hot' }, 'absent'));
  await mustWrite(store, aPut({ name: 'cold' }, 'absent'));
  const begun = store.revisions.published;
  const update = async (): Promise<void> => {
    const { revision: next } = await mustWrite(store, aPut({ name: 'hot' }, revision));
    revision = next;
  };
  for (let i = 0; i < 100; i++) await update();
  const lane = store.writer.lane();
  await mustPush(lane, [aClaim()]);
  // The store commits pushes of one object one after another, even when they wait together.
  for (let round = 0; round < 40; round++)
    await mustPush(
      lane,
      Array.from({ length: 500 }, (_, i) => anUpsert({ name: 'hot' }, { spec: round * 500 + i })),
    );

  const middle = begun + 10_000;
  let [oldest, older]: readonly string[][] = [];
  // The fastest of several rounds, because other work may have slowed the others.
  let elapsedMs = Infinity;
  for (let round = 0; round < 5; round++) {
    const startedMs = performance.now();
    [oldest, older] = [await listTexts(store, aScope(), { revision: begun }), await listTexts(store, aScope(), { revision: middle })];
    elapsedMs = Math.min(elapsedMs, performance.now() - startedMs);
  }

  t.log(`${store.revisions.published - begun} updates; two lists of their past in ${elapsedMs.toFixed(1)} ms`);
  t.deepEqual(oldest, ['amber/acme/cold@2', 'amber/acme/hot@1']);
  t.deepEqual(older, ['amber/acme/cold@2', `amber/acme/hot@${middle}`]);
  t.true(elapsedMs < 20, `${elapsedMs} ms`);
});

test('a snapshot that is kept too long ends with an error once it is compacted away, and is never shown in part', async (t) => {
  const engine = await SqliteEngine.start(t, { history: { historyChangesMax: 500 }, snapshot: { rowsMax: 5 }, snapshotHoldMs: 60_000 });
  const { store, clock } = engine;
  for (let i = 0; i < 20; i++) await mustWrite(store, aPut({ name: `n${String(i).padStart(2, '0')}` }, 'absent'));
  const snapshot = store.objects.snapshot(aScope(), store.revisions.published);
  const { next } = await snapshot.page(undefined);
  for (let i = 0; i < 20; i++) await mustWrite(store, aDelete({ name: `n${String(i).padStart(2, '0')}` }));
  for (let i = 0; i < 482; i++) void store.writer.submit(aPut({ name: `m${i}` }, 'absent'));
  await mustWrite(store, aPut({ name: 'end' }, 'absent'));
  await engine.compact();
  t.is(store.revisions.compacted, 20);

  clock.advance(60_000);
  await engine.compact();

  t.is(store.revisions.compacted, store.revisions.published - 500);
  await t.throwsAsync(snapshot.page(next), { instanceOf: Refused, message: /too old resource version/ });
  snapshot.close();
});
