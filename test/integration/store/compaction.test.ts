import type { ExecutionContext } from 'ava';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { defineChecksumFunctions } from '../../../src/store/sqlite/change-row.js';
import { Compaction } from '../../../src/store/sqlite/compaction.js';
import { readMeta } from '../../../src/store/sqlite/life.js';
import { openWriter, type Connection } from '../../../src/store/sqlite/database.js';
import { aDelete, aPut } from '../../support/objects.js';
import { aWritingHalf, dump, rowsOf, type WritingHalf } from '../../support/store/a-database.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';
import { changesBehind, list, mustWrite, touchedBehind } from '../../contract/read-all.js';
import { aScope } from '../../support/objects.js';

const step = { tombstonesUpTo: 0, tombstonesMax: 1_000_000, budgetMs: 1_000 };

/** Revisions: 1 put a, 2 put b, 3 put a, 4 delete b, 5 put c, 6 delete a. */
function aHistory(t: ExecutionContext): WritingHalf {
  const half = aWritingHalf(t);
  half.commit(
    aPut({ name: 'a' }, 'absent'),
    aPut({ name: 'b' }, 'absent'),
    aPut({ name: 'a' }, 1),
    aDelete({ name: 'b' }),
    aPut({ name: 'c' }, 'absent'),
    aDelete({ name: 'a' }),
  );
  return half;
}

test('a row is removed when the row that superseded it is compacted, never by its own age; a delete leaves a tombstone', (t) => {
  const expected = [
    ['1', '2', '3', '4 tombstone', '5', '6 tombstone'],
    ['1', '2', '3', '4 tombstone', '5', '6 tombstone'],
    ['1', '2', '3', '4 tombstone', '5', '6 tombstone'],
    ['2', '3', '4 tombstone', '5', '6 tombstone'],
    ['3', '4 tombstone', '5', '6 tombstone'],
    ['3', '4 tombstone', '5', '6 tombstone'],
    ['4 tombstone', '5', '6 tombstone'],
  ];
  for (const [upTo, rows] of expected.entries()) {
    const { compaction, database } = aHistory(t);

    t.like(compaction.step({ ...step, upTo }), { compacted: upTo, done: true });

    t.deepEqual(rowsOf(database), rows, `C = ${upTo}`);
  }
});

test('a step ends when its time is over, and the steps together do the whole compaction', (t) => {
  const half = aWritingHalf(t);
  half.commit(...Array.from({ length: 100 }, (_, i) => aPut({ name: 'a' }, i === 0 ? 'absent' : i)));
  let nowMs = 0;
  const compaction = new Compaction(half.database, () => nowMs++);
  const seen: number[] = [];

  for (;;) {
    const { compacted, done } = compaction.step({ ...step, upTo: 99, budgetMs: 1 });
    seen.push(compacted);
    if (done) break;
  }

  t.deepEqual(seen, [32, 64, 96, 99]);
  t.deepEqual(rowsOf(half.database), ['99', '100']);
});

test('with large bodies a step checks the time more often', (t) => {
  const half = aWritingHalf(t);
  half.commit(...Array.from({ length: 4 }, (_, i) => aPut({ name: 'a' }, i === 0 ? 'absent' : i, { spec: 'x'.repeat(400_000) })));
  let nowMs = 0;
  const compaction = new Compaction(half.database, () => nowMs++);

  t.is(compaction.step({ ...step, upTo: 4, budgetMs: 1 }).compacted, 2);
});

largeTest('the cost of a step does not grow with the number of tombstones', (t) => {
  const { database } = aWritingHalf(t);
  // A million deleted keys, and after them an object that changed a hundred times.
  database.pragma('synchronous = OFF');
  const insert = `INSERT INTO changes SELECT i, 1, kind, replaced, 'amber', 'acme', '', name,
    row_checksum(i, 1, kind, replaced, 'amber', 'acme', '', name), 0, '', 0, 0, 0, 0, 0, body`;
  database.exec(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
    ${insert} FROM (SELECT i, 2 AS kind, 0 AS replaced, 'n' || i AS name, NULL AS body FROM n);
    WITH RECURSIVE n (i) AS (SELECT 1000001 UNION ALL SELECT i + 1 FROM n WHERE i < 1000100)
    ${insert} FROM (SELECT i, 1 AS kind, iif(i > 1000001, i - 1, 0) AS replaced, 'a' AS name, zeroblob(100) AS body FROM n);
    UPDATE meta SET value = 1000000 WHERE name = 'compacted';
  `);
  const compaction = new Compaction(database);
  const tookMs: number[] = [];

  for (let upTo = 1_000_010; upTo <= 1_000_100; upTo += 10) {
    const startedMs = performance.now();
    t.like(compaction.step({ ...step, upTo }), { compacted: upTo });
    tookMs.push(performance.now() - startedMs);
  }

  t.log(`a step of ten changes beside 1,000,000 deletes: ${Math.min(...tookMs).toFixed(2)} ms`);
  t.true(Math.min(...tookMs) <= 1, `${tookMs.join()} ms`);
});

test('the compacted revision never decreases, and a repeated step changes nothing', (t) => {
  const { compaction, database } = aHistory(t);
  compaction.step({ ...step, upTo: 5 });
  const before = dump(database);

  t.like(compaction.step({ ...step, upTo: 5 }), { compacted: 5, bytes: 0, done: true });
  t.like(compaction.step({ ...step, upTo: 2 }), { compacted: 5, bytes: 0, done: true });

  t.deepEqual(dump(database), before);
});

test('a step that is cut short leaves no trace, and can be repeated', (t) => {
  const whole = aHistory(t);
  whole.compaction.step({ ...step, upTo: 6 });
  const { database } = aHistory(t);
  const before = dump(database);
  // The trigger rejects the last row but one, so the transaction fails in the middle.
  database.exec(`CREATE TEMP TRIGGER cut BEFORE DELETE ON changes WHEN old.revision = 2 BEGIN SELECT raise(ABORT, 'cut'); END`);

  t.throws(() => new Compaction(database).step({ ...step, upTo: 6 }), { any: true, message: /cut/ });
  t.deepEqual(dump(database), before);
  database.exec('DROP TRIGGER cut');
  new Compaction(database).step({ ...step, upTo: 6 });

  t.deepEqual(dump(database), dump(whole.database));
});

test('tombstones are removed by age or by count, whichever removes more, never above the compacted revision', (t) => {
  const cases: [object, string[], number][] = [
    [{ upTo: 6, tombstonesUpTo: 3 }, ['4 tombstone', '5', '6 tombstone'], 3],
    [{ upTo: 6, tombstonesUpTo: 4 }, ['5', '6 tombstone'], 4],
    [{ upTo: 6, tombstonesUpTo: 6 }, ['5'], 6],
    [{ upTo: 6, tombstonesMax: 1 }, ['5', '6 tombstone'], 4],
    [{ upTo: 6, tombstonesMax: 0 }, ['5'], 6],
    [{ upTo: 4, tombstonesMax: 0 }, ['3', '5', '6 tombstone'], 4],
    [{ upTo: 4, tombstonesUpTo: 6 }, ['3', '5', '6 tombstone'], 4],
  ];
  for (const [asked, rows, tombstonesFrom] of cases) {
    const { compaction, database } = aHistory(t);

    compaction.step({ ...step, upTo: 0, ...asked });

    t.is(readMeta(database, 'tombstones_from'), tombstonesFrom, JSON.stringify(asked));
    t.deepEqual(rowsOf(database), rows, JSON.stringify(asked));
  }
});

test('milestones of a busy object are dropped when they are compacted, and a delete drops those of the incarnation it ended', (t) => {
  const half = aWritingHalf(t);
  const dumped = (table: string, column: string): unknown[] =>
    half.database.prepare(`SELECT revision, ${column} FROM ${table} WHERE ${column} > 0 ORDER BY revision`).raw().all();
  half.commit(aPut({}, 'absent'), ...Array.from({ length: 40 }, (_, i) => aPut({}, i + 1)), aDelete({}));
  t.deepEqual(dumped('milestones', 'born'), [
    [17, 1],
    [33, 1],
  ]);
  t.deepEqual(dumped('changes', 'born'), [[42, 1]]);

  half.compaction.step({ ...step, upTo: 17 });
  t.deepEqual(dumped('milestones', 'born'), [[33, 1]]);
  half.compaction.step({ ...step, upTo: 42 });

  t.deepEqual(dumped('milestones', 'born'), []);
  t.deepEqual(dumped('changes', 'born'), []);
});

test('the path move is dropped with the change that caused it', (t) => {
  const half = aWritingHalf(t);
  const moves = () => half.database.prepare('SELECT revision, before, after FROM path_moves ORDER BY revision').raw().all();
  half.commit(aPut({}, 'absent', { path: 'root:a' }), aPut({}, 1, { path: 'root:b' }), aDelete({}));

  t.deepEqual(moves(), [
    [1, '', 'root:a'],
    [2, 'root:a', 'root:b'],
    [3, 'root:b', ''],
  ]);
  half.compaction.step({ ...step, upTo: 2 });

  t.deepEqual(moves(), [[3, 'root:b', '']]);
});

test('log_bytes is the size of the bodies above the compacted revision, rewritten survivors included', (t) => {
  const { commit, compaction, database } = aWritingHalf(t);
  const above = (): number =>
    Number(
      database
        .prepare('SELECT coalesce(sum(length(body)), 0) FROM changes WHERE revision > ?')
        .pluck()
        .get(readMeta(database, 'compacted')),
    );
  const received: number[] = [];

  received.push(
    commit(
      aPut({ shard: 'amber' }, 'absent', { spec: 'x'.repeat(500) }),
      aPut({ shard: 'birch' }, 'absent', { spec: 'y'.repeat(700) }),
      aPut({ name: 'two' }, 'absent'),
    ).logBytes,
  );
  received.push(commit(aDelete({ shard: 'amber' })).logBytes);
  t.is(received[1], above());
  for (let upTo = 1; upTo <= 5; upTo++) {
    compaction.step({ ...step, upTo });
    t.is(readMeta(database, 'log_bytes'), above(), `C = ${upTo}`);
  }
});

test('age is measured by the moments that commits record, at most one per interval; the newest below the tombstones is kept', (t) => {
  const early = aWritingHalf(t, 1_000_000);
  early.commit(aPut({ name: 'a' }, 'absent'));
  early.commit(aPut({ name: 'b' }, 'absent'));

  t.deepEqual(dump(early.database)['moments'], [{ revision: 1, at_ms: 1_000_000 }]);
});

test('changes older than the limit are compacted, in steps', async (t) => {
  const engine = await SqliteEngine.start(t, { history: { historyAgeMs: 3_600_000, tombstoneAgeMs: 7_200_000 } });
  const { store, clock } = engine;
  for (let i = 0; i < 450; i++) void store.writer.submit(aPut({ name: `n${i}` }, 'absent'));
  const old = await mustWrite(store, aDelete({ name: 'n0' }));
  clock.advance(60_000);
  await mustWrite(store, aPut({ name: 'a-minute-later' }, 'absent'));
  clock.advance(1_800_000);
  await mustWrite(store, aPut({ name: 'young' }, 'absent'));

  await engine.compact();
  t.is(store.revisions.compacted, 0);
  clock.advance(1_790_000);
  await engine.compact();
  t.is(store.revisions.compacted, old.revision + 1);
  t.true(store.history.remembers(old.revision - 1));
  clock.advance(7_200_000);
  await engine.compact();

  t.is(store.revisions.compacted, store.revisions.published);
  t.false(store.history.remembers(old.revision - 1));
  t.is((await list(store, aScope())).length, 451);
});

test('history is compacted by bytes', async (t) => {
  const engine = await SqliteEngine.start(t, { history: { historyBytesMax: 50_000 } });
  for (let i = 0; i < 300; i++) await mustWrite(engine.store, aPut({ name: `n${i}` }, 'absent', { spec: 'x'.repeat(1000) }));

  await engine.compact();

  const kept = await changesBehind(engine.store, aScope(), engine.store.revisions.compacted);
  const bytes = kept.reduce((sum, change) => sum + (change.kind === 'put' ? change.object.body.bytes.length : 0), 0);
  t.true(bytes <= 50_000, `${bytes} bytes`);
});

test('more tombstones than one step removes are all removed, even without a further change', async (t) => {
  const engine = await SqliteEngine.start(t, { history: { historyChangesMax: 0, tombstonesMax: 10 } });
  for (let i = 0; i < 700; i++) {
    void engine.store.writer.submit(aPut({ name: `n${i}` }, 'absent'));
    void engine.store.writer.submit(aDelete({ name: `n${i}` }));
  }
  await mustWrite(engine.store, aPut({ name: 'end' }, 'absent'));

  await engine.compact();

  t.is((await touchedBehind(engine.store, aScope(), engine.store.revisions.published - 21)).length, 11);
  await engine.store.close();
  const { database } = reopened(t, engine);
  t.is(database.prepare('SELECT count(*) FROM changes WHERE kind = 2').pluck().get(), 10);
});

test('a store that stopped during a compaction continues it at its next start, even if nothing changes any more', async (t) => {
  const engine = await SqliteEngine.start(t, { history: { historyChangesMax: 1000 } });
  let { revision } = await mustWrite(engine.store, aPut({}, 'absent'));
  for (let i = 0; i < 900; i++) ({ revision } = await mustWrite(engine.store, aPut({}, revision)));
  await engine.store.close();
  const { database } = reopened(t, engine);
  defineChecksumFunctions(database);
  // The compacted revision is set but the rows are still there, as after a step of an older release
  // or a lowered bound.
  for (let i = 0; i < 50; i++)
    database
      .prepare(
        `INSERT INTO changes SELECT @revision, resource, 2, 0, shard, cluster, namespace, @name,
           row_checksum(@revision, resource, 2, 0, shard, cluster, namespace, @name), 0, '', 0, 0, 0, 0, 0, NULL FROM changes WHERE revision = 1`,
      )
      .run({ revision: i + 10_000, name: `t${i}` });
  database.prepare(`UPDATE meta SET value = 20000 WHERE name = 'revision' OR name = 'compacted'`).run();
  database.close();

  const store = await narrowed(t, engine);
  await store.compact();

  await store.store.close();
  t.is(reopened(t, engine).database.prepare('SELECT count(*) FROM changes WHERE kind = 2').pluck().get(), 10);
});

function reopened(t: ExecutionContext, engine: SqliteEngine): { database: Connection } {
  const database = openWriter(engine.file('strata.db'));
  t.teardown(() => database.close());
  return { database };
}

/** Opens the same directory with room for only ten tombstones. */
function narrowed(t: ExecutionContext, { directory }: SqliteEngine): Promise<SqliteEngine> {
  return SqliteEngine.start(t, { history: { historyChangesMax: 0, tombstonesMax: 10 } }, { directory });
}
