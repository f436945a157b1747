/** What this release makes of stores that an earlier release has written. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { ShardState } from '../../../src/domain/claim.js';
import { formatDigest } from '../../../src/domain/slices/digest.js';
import type { SliceState } from '../../../src/domain/push.js';
import { formatSlice } from '../../../src/domain/slice.js';
import { isDamage } from '../../../src/store/sqlite/damage.js';
import { openWriter } from '../../../src/store/sqlite/database.js';
import { readShards } from '../../../src/store/sqlite/shard-table.js';
import { migrate, schemaOf } from '../../../src/store/sqlite/migrate.js';
import { readSlices } from '../../../src/store/sqlite/slice-table.js';
import { listTexts, mustWrite } from '../../contract/read-all.js';
import { aDelete, aKey, aPut, aScope, shardName, type Place } from '../../support/objects.js';
import { projectFile } from '../../support/project.js';
import { aBegin, aClaim, aClear, aFullSync, aKeep, anEnd, anInvalidation, anUpsert, mustPush } from '../../support/pushes.js';
import { storeDirectory } from '../../support/test-store.js';
import { backToSecond, copyBack, firstSteps, goBack } from '../../support/store/older-store.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';

test('a migration counts the objects of a store from before pushing', (t) => {
  const database = openWriter(join(storeDirectory(t), 'strata.db'));
  t.teardown(() => database.close());
  migrate(database, firstSteps(storeDirectory(t), '0001-change-log.sql'));
  database.exec(`
    INSERT INTO resources (id, api_group, resource, identity) VALUES (1, 'g', 'r', ''), (2, 'g', 's', 'hash');
    INSERT INTO moments (revision, at_ms) VALUES (1, 1000), (4, 2000);`);
  const row = database.prepare(`INSERT INTO changes VALUES (?, ?, 1, ?, ?, 'acme', '', ?, 'v1', 0, 0, 0, 0, ?)`);
  const object = database.prepare(`INSERT INTO objects VALUES (?, ?, 'acme', '', ?, ?)`);
  row.run(1, 1, 0, 'amber', 'a', Buffer.alloc(10));
  row.run(2, 1, 1, 'amber', 'a', Buffer.alloc(20));
  row.run(3, 1, 0, 'amber', 'b', Buffer.alloc(300));
  row.run(4, 2, 0, 'amber', 'a', Buffer.alloc(7));
  row.run(5, 1, 0, 'birch', 'a', Buffer.alloc(9));
  for (const [resource, shard, name, revision] of [
    [1, 'amber', 'a', 2],
    [1, 'amber', 'b', 3],
    [2, 'amber', 'a', 4],
    [1, 'birch', 'a', 5],
  ])
    object.run(resource, shard, name, revision);

  migrate(database, projectFile('migrations'));

  t.deepEqual(
    readSlices(database).map(({ slice, objects, bytes, changedMs, syncedTerm, everSynced }) => [
      slice.resource.resource,
      slice.shard,
      objects,
      bytes,
      changedMs,
      syncedTerm,
      everSynced,
    ]),
    [
      ['r', 'amber', 2, 320, 1000, 0, false],
      ['s', 'amber', 1, 7, 2000, 0, false],
      ['r', 'birch', 1, 9, 2000, 0, false],
    ],
  );
});

const byName = (a: ShardState, b: ShardState): number => (a.shard < b.shard ? -1 : 1);

function sliceText({ slice, objects, bytes, digest, changedMs, everSynced, filterHash }: SliceState): string {
  return [formatSlice(slice), objects, bytes, digest, changedMs, everSynced, filterHash].join(' ');
}

test('a store from before neighbours gets the digests of its objects, and every shard becomes local or removed', async (t) => {
  const engine = await SqliteEngine.start(t);
  const places: readonly Place[] = [
    {},
    { name: 'ü', cluster: 'bold' },
    { namespace: 'x', resource: 'others' },
    { identity: 'hash' },
    { shard: 'birch' },
  ];
  const lane = engine.store.writer.lane();
  await mustPush(lane, [aClaim(), aClaim('birch'), ...places.map((place) => anUpsert(place, { spec: 'old' }))]);
  await mustPush(lane, [...places.map((place, spec) => anUpsert(place, { spec })), aBegin(), aKeep(), aKeep(places[1]), anEnd()]);
  await mustPush(lane, [anUpsert({ shard: 'birch', name: 'two' }), aClaim('gone'), aClear('gone', { nowMs: 5_000 })]);
  await mustWrite(engine.store, aPut({ shard: 'plain' }, 'absent'));
  const [slices, before] = [[...engine.store.state.slices], [...engine.store.state.shards]];
  await engine.store.close();
  const directory = storeDirectory(t);
  const database = openWriter(join(directory, 'strata.db'));
  migrate(database, firstSteps(storeDirectory(t), '0001-change-log.sql', '0002-shards-and-slices.sql'));
  backToSecond(database, engine.directory);

  migrate(database, projectFile('migrations'));
  database.close();
  const upgraded = await SqliteEngine.start(t, {}, { directory });

  const { store } = upgraded;
  const shards = before.map((state) => ({ ...state, process: '', origin: store.cacheId }));
  t.not(store.revisions.locate('4500000000000000001').kind, 'ours', 'versions in the earlier format are foreign');
  t.regex(store.revisions.format(1), new RegExp(`^${store.epoch}`));
  t.deepEqual(store.revisions.locate(store.revisions.format(1)), { kind: 'ours', revision: 1 });
  t.deepEqual([...upgraded.store.state.slices].map(sliceText).toSorted(), slices.map(sliceText).toSorted());
  t.deepEqual([...upgraded.store.state.shards].toSorted(byName), shards.toSorted(byName));
  await mustPush(upgraded.store.writer.lane(), [anUpsert({}, { spec: 'new' }), anUpsert({}, { spec: 0 })]);
  const digests = async ({ store }: SqliteEngine) => [...store.state.slices].map(({ digest }) => digest).toSorted();
  t.deepEqual(await digests(upgraded), slices.map(({ digest }) => digest).toSorted(), 'replacing must not need the old body');
});

largeTest('digests of more objects than a 64-bit sum could hold are added exactly', (t) => {
  const database = openWriter(join(storeDirectory(t), 'strata.db'));
  t.teardown(() => database.close());
  migrate(database, firstSteps(storeDirectory(t), '0001-change-log.sql', '0002-shards-and-slices.sql'));
  const count = 70_000;
  database.exec(`
    INSERT INTO resources (id, api_group, resource, identity) VALUES (1, 'g', 'r', '');
    INSERT INTO slices VALUES ('amber', 1, ${count}, ${count}, 0, 0, 0);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    INSERT INTO changes SELECT i, 1, 1, 0, 'amber', 'acme', '', 'n' || i, 'v1', 0, 0, 0, 0, x'7b' FROM n;
    INSERT INTO objects SELECT resource, shard, cluster, namespace, name, revision FROM changes`);

  migrate(database, projectFile('migrations'));

  const halves = database.prepare<[], { high: number; low: number }>(`SELECT digest_high AS high, digest_low AS low FROM objects`).all();
  const modulus = 2n ** 48n;
  const sum = (half: 'high' | 'low'): number => Number(halves.reduce((all, each) => all + BigInt(each[half]), 0n) % modulus);
  t.is(readSlices(database)[0]?.digest, formatDigest({ high: sum('high'), low: sum('low') }));
  t.deepEqual(readShards(database), [
    { shard: shardName('amber'), term: 1, process: '', removed: false, origin: '', via: 'local', plain: true },
  ]);
});

largeTest('a store from before epochs shows its past unchanged', async (t) => {
  const history = { history: { historyChangesMax: 600 } };
  const engine = await SqliteEngine.start(t, history);
  const { store } = engine;
  const write = async (place: Place, isDeleted: boolean): Promise<void> => {
    const held = await store.objects.get(aKey(place));
    if (isDeleted && held !== undefined) await mustWrite(store, aDelete(place));
    else await mustWrite(store, aPut(place, held?.revision ?? 'absent', { spec: { at: store.revisions.published } }));
  };
  for (let i = 0; i < 800; i++) {
    await write({ name: `n${i % 23}`, cluster: i % 2 ? 'acme' : 'bold' }, i % 7 === 0);
    await write({ name: 'busy', shard: i % 50 === 0 ? 'birch' : 'amber' }, i === 700);
  }
  await engine.compact();
  const { compacted, published } = store.revisions;
  const revisions = Array.from({ length: 61 }, (_, i) => compacted + i * 10).filter((revision) => revision <= published);
  const past = async (of: SqliteEngine): Promise<unknown> =>
    Promise.all(revisions.map(async (revision) => listTexts(of.store, aScope(), { revision })));
  const expected = await past(engine);
  await store.close();
  const directory = storeDirectory(t);
  const database = openWriter(join(directory, 'strata.db'));
  migrate(database, firstSteps(storeDirectory(t), '0001-change-log.sql', '0002-shards-and-slices.sql', '0003-sides-links-digests.sql'));
  goBack(database, engine.directory);
  database.exec(`
    INSERT INTO main.objects SELECT resource, shard, cluster, namespace, name, revision, digest_high, digest_low FROM now.objects;
    INSERT INTO main.shards (shard, incarnation, removed, moves, side, plain) SELECT shard, term, removed, 0, via, plain FROM now.shards`);
  copyBack(database, 'slices');

  migrate(database, projectFile('migrations'));
  database.close();
  const upgraded = await SqliteEngine.start(t, history, { directory });

  t.is(upgraded.store.revisions.compacted, compacted);
  t.true(revisions.length > 50);
  t.deepEqual(await past(upgraded), expected);
});

test('a body that was damaged before rows had checksums gets none: the store is left unchanged', async (t) => {
  const engine = await SqliteEngine.start(t);
  await mustWrite(engine.store, aPut({}, 'absent', { spec: 'true' }));
  await mustWrite(engine.store, aPut({ name: 'two' }, 'absent'));
  await engine.store.close();
  const database = openWriter(join(storeDirectory(t), 'strata.db'));
  t.teardown(() => database.close());
  migrate(database, firstSteps(storeDirectory(t), '0001-change-log.sql', '0002-shards-and-slices.sql', '0003-sides-links-digests.sql'));
  goBack(database, engine.directory);
  database.exec(`
    INSERT INTO main.objects SELECT resource, shard, cluster, namespace, name, revision, digest_high, digest_low FROM now.objects;
    UPDATE main.changes SET body = CAST(replace(CAST(body AS TEXT), 'true', 'tsue') AS BLOB) WHERE revision = 1`);
  copyBack(database, 'slices');

  const error = t.throws(() => migrate(database, projectFile('migrations')), {
    message: /the digest of .*"one".* does not match its body/,
  });

  t.true(isDamage(error));
  t.is(schemaOf(database), 3);
});

test('the migration that adds checksums reports a put without a body as damage', (t) => {
  const database = openWriter(join(storeDirectory(t), 'strata.db'));
  t.teardown(() => database.close());
  migrate(database, firstSteps(storeDirectory(t), '0001-change-log.sql'));
  database.exec(`INSERT INTO changes VALUES (1, 1, 1, 0, 'amber', 'acme', '', 'a', 'v1', 0, 0, 0, 0, NULL)`);

  const error = t.throws(() => migrate(database, projectFile('migrations')), { message: /no body/ });

  t.true(isDamage(error));
});

test('in a store from before path moves had a logical cluster, a migration adds it to them', async (t) => {
  const engine = await SqliteEngine.start(t);
  const lane = engine.store.writer.lane();
  await mustPush(lane, [aClaim(), anUpsert({}, { path: 'root:a' })]);
  const first = engine.store.revisions.published;
  await mustPush(lane, [anUpsert({}, { path: 'root:b' })]);
  await engine.store.close();
  const moves = `INSERT INTO main.path_moves SELECT revision, before, after FROM now.path_moves`;

  const upgraded = await SqliteEngine.start(t, {}, { directory: asBefore(t, '0011', engine.directory, { path_moves: moves }) });

  t.deepEqual((await upgraded.store.paths.pathsOf([aKey()], first)).map(String), ['root:a']);
  t.deepEqual((await upgraded.store.paths.pathsOf([aKey()])).map(String), ['root:b']);
});

test('after the migration a current slice knows the link it came over; a stale one does not', async (t) => {
  const engine = await SqliteEngine.start(t);
  const [eu, stale] = ['child/eu', { resource: 'apiresourceschemas' }] as const;
  const syncs = [{}, stale].flatMap((place) => aFullSync(place, [anUpsert(place, {}, eu)], eu, 'e1'));
  await mustPush(engine.store.writer.lane(), [aClaim({ via: eu }), ...syncs, anInvalidation(stale, eu)]);
  await engine.store.close();

  const upgraded = await SqliteEngine.start(t, {}, { directory: asBefore(t, '0012', engine.directory) });

  const cameOver = [...upgraded.store.state.slices].map(({ slice, cameOver: by }) => [slice.resource.resource, by]);
  t.deepEqual(
    new Map(cameOver as [string, string][]),
    new Map([
      ['apiexports', eu],
      ['apiresourceschemas', ''],
    ]),
  );
});

/**
 * A store of the schema before that migration, with the data of the store in `from`. `others`: SQL
 * that copies tables whose columns changed.
 */
function asBefore(t: ExecutionContext, step: string, from: string, others: Readonly<Record<string, string>> = {}): string {
  const directory = storeDirectory(t);
  const database = openWriter(join(directory, 'strata.db'));
  migrate(database, firstSteps(storeDirectory(t), ...readdirSync(projectFile('migrations')).filter((name) => name < step)));
  database.exec(`ATTACH '${join(from, 'strata.db')}' AS now`);
  for (const { name } of database.prepare<[], { name: string }>(`SELECT name FROM main.sqlite_schema WHERE type = 'table'`).all()) {
    const other = others[name];
    if (other === undefined) copyBack(database, name);
    else database.exec(other);
  }
  database.exec('DETACH now');
  database.close();
  return directory;
}
