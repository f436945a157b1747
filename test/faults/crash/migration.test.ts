/**
 * A server dies at each failpoint of an upgrade (F2, F26). The next start must complete the
 * upgrade: the store equals one that was upgraded without a crash, and resourceVersions go on. The
 * older release must be able to open the copy that was made before the upgrade.
 */
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import type { Failpoint } from '../../../src/diagnostics/failpoint.js';
import { openReader, openWriter } from '../../../src/store/sqlite/database.js';
import { migrate, schemaOf } from '../../../src/store/sqlite/migrate.js';
import { strataCommand } from '../../demo/strata-command.js';
import { backToSecond, firstSteps } from '../../support/store/older-store.js';
import type { KubeClient } from '../../support/kube-client.js';
import { RawPusher, pushedExport, sliceOf } from '../../support/raw-pusher.js';
import { StrataProcess } from '../../support/strata-process.js';
import { storeDirectory } from '../../support/test-store.js';

const everywhere = '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';
const birch = '/services/cache/shards/birch/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';
const objects = 60;
const older = 2;

const deaths: readonly (readonly Readonly<{ name: Failpoint; time: number }>[])[] = [
  [{ name: 'copy.before-name', time: 1 }],
  [{ name: 'migration.copied', time: 1 }],
  [{ name: 'migration.rewritten', time: 1 }],
  [{ name: 'migration.step', time: 1 }],
  [{ name: 'migration.step', time: 2 }],
  [{ name: 'migration.step', time: 3 }],
  [{ name: 'migration.after', time: 1 }],
  [{ name: 'epoch.before', time: 1 }],
  [{ name: 'epoch.after', time: 1 }],
  [
    { name: 'migration.step', time: 2 },
    { name: 'migration.copied', time: 1 },
    { name: 'migration.step', time: 2 },
    { name: 'epoch.before', time: 1 },
  ],
];

test.serial('the next start completes an upgrade that was cut short, and keeps a copy that the older release can open', async (t) => {
  await using server = await StrataProcess.start();
  const data = join(server.dataFolder, 'data');
  const begin = (): void => {
    rmSync(data, { recursive: true });
    mkdirSync(data);
    copyFileSync(fixture, join(data, 'strata.db'));
  };
  const client = server.client();
  await fill(server, client);
  await server.stop();
  const fixture = join(server.folder, 'older.db');
  makeOlder(fixture, { from: data, steps: firstSteps(storeDirectory(t), '0001-change-log.sql', '0002-shards-and-slices.sql') });
  const before = contentOf(fixture);

  begin();
  await server.resume();
  const listed = await listing(client);
  const wanted = contentOf(join(data, 'strata.db'));
  t.is(listed.length, objects);
  t.like([before, wanted], [{ vacuum: 0 }, { vacuum: 2 }]);
  await server.stop();

  for (const dies of deaths) {
    const what = dies.map(({ name, time }) => `${name}:${time}`).join(', ');
    begin();
    for (const { name, time } of dies) {
      const starting = server.resume(undefined, { STRATA_FAILPOINT: `${name}:${time}` }).catch(() => {});
      t.is(await server.ended(), 'SIGKILL', what);
      await starting;
    }
    await server.resume();

    t.deepEqual(await listing(client), listed, what);
    t.deepEqual(contentOf(join(data, 'strata.db')), wanted, what);
    const { resourceVersion = '' } = (await client.list(everywhere)).metadata;
    const written = await write(client, 'behind');
    await server.restart('SIGKILL');
    const again = await write(client, 'again');
    t.true(BigInt(resourceVersion) < BigInt(written) && BigInt(written) < BigInt(again), what);
    t.deepEqual(await versionsBehind(client, resourceVersion), [written, again], what);
    await server.stop();
    await strataCommand(['check', '--root-directory', server.dataFolder]);

    const copies = readdirSync(data).filter((name) => name.startsWith('strata.db.'));
    t.deepEqual(copies, [`strata.db.schema-${older}`], what);
    // A copy that was made after the rewriting can give pages back, unlike `before`.
    t.deepEqual({ ...contentOf(join(data, copies[0]!)), vacuum: 0 }, before, `${what}: the copy`);
  }
});

/** Writes objects as a pusher and as a plain writer; updates, deletes and recreates some. */
async function fill(server: StrataProcess, client: KubeClient): Promise<void> {
  const slice = sliceOf('apiexports');
  const pusher = await RawPusher.open(server);
  const names = Array.from({ length: objects / 2 + 10 }, (_, i) => `pushed-${i}`);
  await pusher.sync(
    slice,
    names.map((name) => pushedExport(name)),
  );
  for (let turn = 0; turn < 20; turn += 1) pusher.put(slice, [pushedExport('pushed-1', { spec: { turn } })]);
  await pusher.acknowledged(pusher.delete(slice, names.slice(-10)));
  pusher.socket.terminate();
  for (let i = 0; i < objects / 2; i += 1) await write(client, `written-${i}`);
  await client.delete(`${birch}/written-1`);
  await write(client, 'written-1');
}

/** Writes one file of the older schema, without auto_vacuum: it cannot give pages back. */
function makeOlder(file: string, { from, steps }: Readonly<{ from: string; steps: string }>): void {
  const database = openWriter(file);
  migrate(database, steps);
  backToSecond(database, from);
  database.exec('DETACH now; PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM');
  database.close();
}

/** Every row of every table, except what each start writes; `vacuum`: the file's auto_vacuum. */
function contentOf(file: string): Readonly<Record<string, unknown>> {
  const database = openReader(file);
  try {
    const tables = database.prepare<[], string>(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`).pluck().all();
    const rows = (table: string): readonly string[] =>
      database
        .prepare(`SELECT * FROM ${table} ${table === 'meta' ? `WHERE name <> 'open'` : ''}`)
        .all()
        .map((row) => JSON.stringify(row))
        .toSorted();
    const kept = tables.filter((table) => table !== 'epochs');
    const vacuum = database.pragma('auto_vacuum', { simple: true });
    return { schema: schemaOf(database), vacuum, ...Object.fromEntries(kept.map((table) => [table, rows(table)])) };
  } finally {
    database.close();
  }
}

/**
 * The listed objects without resourceVersions, which belong to the epoch that each upgrade begins.
 */
async function listing(client: KubeClient): Promise<readonly unknown[]> {
  const { items } = await client.list(everywhere);
  return items.map(({ metadata: { resourceVersion: _, ...metadata }, ...rest }) => ({ ...rest, metadata }));
}

/** Creates an object of the shard birch; resolves with its resourceVersion. */
async function write(client: KubeClient, name: string): Promise<string> {
  const object = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name } };
  return (await client.create(birch, object)).metadata.resourceVersion!;
}

/** The resourceVersions of all events after `resourceVersion`. */
async function versionsBehind(client: KubeClient, resourceVersion: string): Promise<readonly string[]> {
  const seen: string[] = [];
  for await (const { object } of client.watch(everywhere, { query: { resourceVersion, timeoutSeconds: '1' } }))
    seen.push(object.metadata.resourceVersion!);
  return seen;
}
