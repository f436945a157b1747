import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { test } from '../../support/test.js';
import { openReader, openWriter } from '../../../src/store/sqlite/database.js';
import { WalFile } from '../../../src/store/sqlite/wal-file.js';
import { storeDirectory } from '../../support/test-store.js';

const mebibyte = 1024 * 1024;

test('readers that overlap without a gap do not prevent the write-ahead log from starting over', async (t) => {
  const file = join(storeDirectory(t), 'strata.db');
  const database = openWriter(file);
  t.teardown(() => database.close());
  database.exec('CREATE TABLE written (body BLOB)');
  const write = database.prepare('INSERT INTO written VALUES (zeroblob(1000000))');
  const wal = new WalFile(database, file);
  const readers = new Worker(new URL('../../support/store/overlapping-readers.js', import.meta.url), { workerData: file });
  await once(readers, 'message');
  let bytesMax = 0;

  for (let i = 0; i < 150; i++) {
    write.run();
    wal.afterCommit();
    bytesMax = Math.max(bytesMax, statSync(`${file}-wal`).size);
  }

  readers.postMessage('end');
  const [turns] = (await once(readers, 'message')) as [number];
  t.log(`${turns} read transactions beside 150 MB of writes; the log grew to ${(bytesMax / mebibyte).toFixed(1)} MiB`);
  t.true(turns > 10);
  t.true(bytesMax < 48 * mebibyte, `${bytesMax} bytes`);
});

test('a reader that stays costs a writer little, and the file shrinks after it has finished', (t) => {
  const file = join(storeDirectory(t), 'strata.db');
  const database = openWriter(file);
  const reader = openReader(file);
  t.teardown(() => (reader.close(), database.close()));
  database.exec('CREATE TABLE written (body BLOB)');
  const write = database.prepare('INSERT INTO written VALUES (zeroblob(1000000))');
  const wal = new WalFile(database, file);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM written').get();

  const startedMs = performance.now();
  for (let i = 0; i < 60; i++) {
    write.run();
    wal.afterCommit();
  }
  const elapsedMs = performance.now() - startedMs;
  const grown = statSync(`${file}-wal`).size;
  reader.exec('COMMIT');
  for (let i = 0; i < 10; i++) {
    write.run();
    wal.afterCommit();
  }

  t.log(`${elapsedMs.toFixed(0)} ms for 60 MB beside it; the log grew to ${(grown / mebibyte).toFixed(1)} MiB`);
  t.true(grown > 48 * mebibyte, 'the reader must pin the log');
  t.true(statSync(`${file}-wal`).size < 20 * mebibyte, `${statSync(`${file}-wal`).size} bytes afterwards`);
});
