/**
 * The steps of docs/backup.md with real processes: back up a server under load, check the copy, and
 * restore it after a kill -9. Also how a server behaves when its store is damaged.
 */
import { closeSync, copyFileSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { KubeClient, KubeList } from '../../support/kube-client.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { runStrata } from './run-strata.js';

const collection = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';

async function write(client: KubeClient, name: string, bytes = 100): Promise<string> {
  const annotations = { filler: 'x'.repeat(bytes) };
  const object = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name, annotations } };
  return (await client.create(collection, object)).metadata.resourceVersion!;
}

const namesIn = async (client: KubeClient): Promise<readonly string[]> =>
  (await client.list(collection)).items.map(({ metadata }) => metadata.name!);

/** The name and the filler of each object in a list. */
const bodiesOf = (list: string): readonly string[] =>
  (JSON.parse(list) as KubeList).items.map(({ metadata: { name, annotations } }) => `${name} ${annotations?.['filler']}`);

let runs = 0;

/** Starts writers. `stop` resolves with how long each write took in ms, sorted. */
function load(client: KubeClient, writers: number): Readonly<{ stop: () => Promise<readonly number[]> }> {
  runs += 1;
  let isStopped = false;
  const tookMs: number[] = [];
  const running = Array.from({ length: writers }, async (_, writer) => {
    for (let i = 0; !isStopped; i += 1) {
      const beganMs = performance.now();
      await write(client, `load-${runs}-${writer}-${i}`, 2_000);
      tookMs.push(performance.now() - beganMs);
    }
  });
  return {
    stop: async () => {
      isStopped = true;
      await Promise.all(running);
      return tookMs.toSorted((a, b) => a - b);
    },
  };
}

const dataOf = (server: StrataProcess): string => join(server.dataFolder, 'data');

function damage(server: StrataProcess): void {
  const fd = openSync(join(dataOf(server), 'strata.db'), 'r+');
  for (let page = 1; page < 4; page += 1) writeSync(fd, Buffer.alloc(8192, 0x5a), 0, 8192, page * 8192);
  closeSync(fd);
}

test.serial('a server is backed up under load, killed and restored, and its writers go on during the backups', async (t) => {
  await using server = await StrataProcess.start();
  const client = server.client();
  for (let i = 0; i < 2_000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, k) => write(client, `before-${i + k}`, 20_000)));
  const quiet = load(client, 8);
  await sleep(2_000);
  const quietMs = await quiet.stop();
  const file = join(server.folder, 'backup.db');
  const logFile = join(dataOf(server), 'strata.db-wal');

  const busy = load(server.client(), 8);
  for (let i = 0; i < 5; i += 1) {
    const ran = await runStrata(server, ['backup', `${file}.${i}`]);
    t.is(ran.ended, 0, ran.said);
    t.regex(ran.printed, /^Copied .*strata\.db to .*: [\d.]+ MiB in [\d.]+ s\.\n$/);
  }
  const busyMs = await busy.stop();
  const at = (sorted: readonly number[], part: number): string => `${sorted[Math.floor(sorted.length * part)]?.toFixed(1)} ms`;
  t.log(
    `a write without a backup: p50 ${at(quietMs, 0.5)}, p99 ${at(quietMs, 0.99)}; beside five: p50 ${at(busyMs, 0.5)}, p99 ${at(busyMs, 0.99)}`,
  );
  t.log(`${statSync(`${file}.4`).size} bytes copied, the log has ${statSync(logFile).size}`);
  t.true(busyMs.length > 100, 'the writers went on');
  const again = load(server.client(), 8);
  await sleep(1_000);
  await again.stop();
  t.true(statSync(logFile).size < 128 * 1024 * 1024, 'SQLite starts the WAL over after a backup');

  const lost = await write(client, 'lost');
  await server.kill();
  const checked = await runStrata(server, ['check', `${file}.4`]);
  t.is(checked.ended, 0, checked.said);
  t.regex(checked.printed, /at resourceVersion \d{19}\n(?:\w+ +sound +\d+ examined\n){8}No damage was found\.\n$/);
  const left = await runStrata(server, ['check']);
  t.is(left.ended, 0, left.said);
  const restored = await runStrata(server, ['restore', `${file}.4`]);
  t.is(restored.ended, 0, restored.said);
  t.regex(
    restored.printed,
    /^Restored .*backup\.db\.4, which stands at resourceVersion \d{19}\.\nThe store that was there before is now .*strata\.db\.replaced-/,
  );
  await server.resume();
  const names = await namesIn(client);
  t.true(names.length > 2_000);
  t.false(names.includes('lost'));
  t.like(JSON.parse((await client.raw('GET', `${collection}?resourceVersion=${lost}&resourceVersionMatch=Exact`)).text), {
    kind: 'Status',
  });
  await write(client, 'again');
});

test.serial('commands refuse a running server, an existing target, and a file that is no store', async (t) => {
  await using server = await StrataProcess.start();
  await write(server.client(), 'one');
  const file = join(server.folder, 'backup.db');
  t.is((await runStrata(server, ['backup', file])).ended, 0);

  const refusals: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['restore', file], 1, /in use/],
    [['check'], 1, /in use/],
    [['backup', file], 2, /exists already/],
    [['backup'], 2, /missing required argument/],
    [['restore'], 2, /missing required argument/],
    [['check', join(server.folder, 'nothing')], 1, /cannot be opened/],
    [['check', server.certificateFile], 1, /is damaged/],
    [['backup', join(server.folder, 'no', 'folder')], 1, /ENOENT/],
  ];
  for (const [words, code, said] of refusals) {
    const ran = await runStrata(server, words);
    t.is(ran.ended, code, words.join(' '));
    t.regex(ran.said, said, words.join(' '));
    t.is(ran.said.trimEnd().split('\n').length, 1, 'the error is one line');
  }
  t.is((await runStrata(server, ['check', file])).ended, 0);
});

test.serial(
  'a damaged store is set aside and not served; the server stays alive, is not ready and says why, until a store is restored',
  async (t) => {
    await using server = await StrataProcess.start();
    const client = server.client();
    for (let i = 0; i < 200; i += 1) await write(client, `n${i}`, 2_000);
    const file = join(server.folder, 'backup.db');
    t.is((await runStrata(server, ['backup', file])).ended, 0);
    await server.kill();
    rmSync(join(dataOf(server), 'strata.db-wal'));
    rmSync(join(dataOf(server), 'strata.db'));
    copyFileSync(file, join(dataOf(server), 'strata.db'));
    damage(server);

    for (let i = 0; i < 2; i += 1) {
      const starting = server.resume().catch(() => {});
      const probe = server.client();
      await until(async () => (await probe.raw('GET', '/livez').catch(() => undefined))?.status === 200, 30_000);
      const ready = await probe.raw('GET', '/readyz');
      t.is(ready.status, 500);
      t.regex(ready.text, /\[-\]store failed: the store is damaged and was moved out of the way/);
      const listed = await probe.raw('GET', collection);
      t.is(listed.status, 503);
      t.like(JSON.parse(listed.text), { kind: 'Status', reason: 'ServiceUnavailable' });
      if (i === 1) t.is((await runStrata(server, ['check'])).ended, 1, 'there is no store, and the server holds no lock on it');
      if (i === 1) t.is((await runStrata(server, ['restore', file])).ended, 0, 'a restore works beside a server that has no store');
      await server.stop();
      await starting;
    }
    t.regex(await server.log(), /strata\.db\.damaged-.*"store\.damaged"/);
    const aside = readdirSync(dataOf(server)).filter((name) => name.startsWith('strata.db.damaged-'));
    t.is(aside.length, 1);
    t.is((await runStrata(server, ['check', join(dataOf(server), aside[0]!)])).ended, 1);
    await server.resume();
    t.is((await namesIn(server.client())).length, 200);
  },
);

test.serial('an older database file put beside the WAL of a killed server is served as it was, or not at all', async (t) => {
  await using server = await StrataProcess.start();
  const client = server.client();
  for (let i = 0; i < 300; i += 1) await write(client, `n${i}`, 8_000);
  const before = bodiesOf((await client.raw('GET', collection)).text);
  await server.stop();
  const copy = join(server.folder, 'copy.db');
  copyFileSync(join(dataOf(server), 'strata.db'), copy);
  await server.resume();
  // SQLite starts the WAL over several times, so it holds only a part of what was written.
  for (let round = 0; round < 4; round += 1)
    for (let i = 0; i < 300; i += 1)
      await client.mergePatch(`${collection}/n${i}`, { metadata: { annotations: { filler: String(round).repeat(8_000) } } });

  await server.kill();
  copyFileSync(copy, join(dataOf(server), 'strata.db'));
  // A server of commit e892933 needs this: its page asks the operator to delete the rollback
  // marker.
  rmSync(join(dataOf(server), 'strata.witness'), { force: true });
  const starting = server.resume(10_000).catch(() => {});
  const probe = server.client();
  await until(async () => (await probe.raw('GET', '/livez').catch(() => undefined))?.status === 200, 9_000);
  const ready = await probe.raw('GET', '/readyz');
  // The server cuts a list off when it meets damage half way.
  const listed = await probe.raw('GET', collection).catch((error: unknown) => ({ status: 0, text: String(error) }));
  await starting;

  t.log(`ready: ${ready.status}, a list: ${listed.status} ${listed.text.slice(0, 200)}`);
  if (ready.status !== 200) {
    t.regex(ready.text, /the store is damaged and was moved out of the way/);
    t.is(listed.status, 503);
  } else {
    t.is(listed.status, 200);
    t.deepEqual(bodiesOf(listed.text), before);
  }
});
