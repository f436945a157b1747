/**
 * What bounds a store on the disk, seen from outside: a server in a process of its own, on the real clock, with its metrics and the size of its
 * files. Nothing here knows how it keeps them.
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

test.serial('a history of 100 changes has 100 once 2,000 patches have come, not 200 fewer every ten seconds', async (t) => {
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
  // Fewer changes than one step of any compaction takes.
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
  // As a backup does: it stands at one moment, and the log cannot start over meanwhile.
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
