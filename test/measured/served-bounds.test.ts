/**
 * What bounds a store on the disk, seen from outside: a server in a process of its own, on the real
 * clock. The tests read only its metrics and the sizes of its files.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { openReader } from '../../src/store/sqlite/database.js';
import type { KubeClient } from '../support/kube-client.js';
import { aPath, anApiExport } from '../support/objects.js';
import { metricOf } from '../support/process-figures.js';
import { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';

const mebibyte = 1024 * 1024;

type Known = Readonly<{ client: KubeClient; mebibytes: (suffix?: string) => number; file: string }>;

async function aServer(t: ExecutionContext, ...flags: readonly string[]): Promise<Known> {
  t.timeout(120_000);
  const server = await StrataProcess.start({ flags });
  t.teardown(() => server[Symbol.asyncDispose]());
  const file = join(server.dataFolder, 'data', 'strata.db');
  return { client: server.client(), file, mebibytes: (suffix = '') => statSync(`${file}${suffix}`).size / mebibyte };
}

async function historyOf(client: KubeClient): Promise<number> {
  const metric = async (name: string): Promise<number> => (await metricOf(client, `strata_${name}`)) ?? Infinity;
  return (await metric('published_revision')) - (await metric('compacted_revision'));
}

async function create(client: KubeClient, from: number, to: number, bytes: number): Promise<void> {
  const spec = { filler: 'x'.repeat(bytes) };
  for (let i = from; i < to; i++) await client.create(aPath(), anApiExport({ name: `n${i}` }, { spec }));
}

test.serial('after 2,000 patches in a row, a history bounded to 100 changes has little more than 100', async (t) => {
  const { client } = await aServer(t, '--history-changes-max=100');
  const hands = Array.from({ length: 16 }, (_, hand) => `n${hand}`);
  await Promise.all(hands.map((name) => client.create(aPath(), anApiExport({ name }))));
  const patch = async (name: string): Promise<void> => {
    for (let i = 0; i < 125; i++) await client.mergePatch(aPath({ name }), { spec: { i } });
  };

  await Promise.all(hands.map(patch));
  const atOnce = await historyOf(client);
  await sleep(1_000);
  const later = await historyOf(client);

  t.log(`${atOnce} changes of history behind the last patch, ${later} a second later`);
  t.true(atOnce <= 110, `${atOnce} changes`);
  t.true(later <= 110, `${later} changes`);
});

test.serial('the file is small again once nine of ten objects are gone and compacted', async (t) => {
  const { client, mebibytes } = await aServer(t, '--history-changes-max=0');
  await create(client, 0, 90, 1_500_000);
  const full = mebibytes() + mebibytes('-wal');

  for (let i = 9; i < 90; i++) await client.delete(aPath({ name: `n${i}` }));
  // These are fewer changes than one compaction step takes.
  await until(async () => (await historyOf(client)) === 0, 30_000);
  await until(() => mebibytes() < 45, 10_000).catch(() => {});

  t.log(`${full.toFixed()} MiB of 90 objects, ${mebibytes().toFixed()} of 9`);
  t.true(full > 120, `${full} MiB`);
  t.true(mebibytes() < 45, `${mebibytes()} MiB`);
});

test.serial('the write-ahead log is small again once another reader of the file is gone', async (t) => {
  const { client, file, mebibytes } = await aServer(t);
  const reader = openReader(file);
  t.teardown(() => reader.close());
  // As a backup does, the reader stays at one snapshot, so SQLite cannot start the log over
  // meanwhile.
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM changes').get();

  await create(client, 0, 160, 500_000);
  const grown = mebibytes('-wal');
  reader.exec('COMMIT');
  await create(client, 160, 170, 500_000);

  t.log(`the log grew to ${grown.toFixed()} MiB, and has ${mebibytes('-wal').toFixed()} after ten more writes`);
  t.true(grown > 70, `${grown} MiB`);
  t.true(mebibytes('-wal') < 40, `${mebibytes('-wal')} MiB`);
});
