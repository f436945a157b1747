/**
 * A row that differs from the one that was written, though SQLite finds nothing wrong (F5). The
 * reader must get an error, the store must stop, and the next start must set the store aside.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Revision } from '../../../src/domain/revision.js';
import { DamagedStore } from '../../../src/store/damaged-store.js';
import { openWriter } from '../../../src/store/sqlite/database.js';
import type { SqliteStore } from '../../../src/store/sqlite/store.js';
import { changesBehind, listTexts, mustWrite, touchedBehind } from '../../contract/read-all.js';
import { aDelete, aKey, aPut, aScope, type Place } from '../../support/objects.js';
import { aWritingHalf, rowsOf } from '../../support/store/a-database.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';

/**
 * In the logical cluster `acme` on amber. An object of the same name on the shard `birch` must
 * survive.
 */
const place = (name: string): Place => ({ name });
const [first, replaced, fresh, gone, deleted] = [1, 2, 3, 4, 5] as const;

/** A store with the revisions above. Nothing is cached that was read or written. */
async function aStore(t: ExecutionContext): Promise<SqliteEngine> {
  const engine = await SqliteEngine.start(t);
  const { store } = engine;
  await mustWrite(store, aPut({ ...place('old'), shard: 'birch' }, 'absent', { spec: 'namesake' }));
  await mustWrite(store, aPut(place('old'), 'absent', { spec: 'first' }));
  await mustWrite(store, aPut(place('old'), replaced, { spec: 'second' }));
  await mustWrite(store, aPut(place('gone'), 'absent', { spec: 'of something' }));
  await mustWrite(store, aDelete(place('gone')));
  return engine;
}

function spoil(engine: SqliteEngine, sql: string): void {
  const database = openWriter(engine.file('strata.db')).unsafeMode();
  database.exec(sql);
  database.close();
}

type Read = (store: SqliteStore) => Promise<unknown>;

const reads = {
  list: (store) => listTexts(store, aScope()),
  get: (store) => store.objects.get(aKey(place('old'))),
  'list of the past': (store) => listTexts(store, aScope(), { revision: gone }),
  changes: (store) => changesBehind(store, aScope(), first),
  'every change': async (store) => {
    for await (const chunk of store.history.everyChange({ after: first, upTo: store.revisions.published }, () => true))
      for (const change of chunk.changes) change.previous();
  },
  healing: (store) => touchedBehind(store, aScope(), first),
} as const satisfies Record<string, Read>;

/** Changes of columns. The first also removes the row from the index by type. */
const head = [
  `resource = 99`,
  `kind = 3 - kind`,
  `replaced = replaced - 1`,
  `shard = 'cedar'`,
  `cluster = 'bold'`,
  `namespace = 'x'`,
  `name = 'olf'`,
  `checksum = checksum + 1`,
];
const tail = [
  `version = 'v2'`,
  `metadata_start = metadata_start + 1`,
  `metadata_end = metadata_end + 1`,
  `annotations_at = annotations_at + 1`,
  `revision_at = revision_at + 1`,
  `body_checksum = body_checksum + 1`,
  `body = CAST(replace(CAST(body AS TEXT), 'spec', 'sped') AS BLOB)`,
  `body = NULL`,
];

const cases: readonly Readonly<{ revision: Revision; columns: readonly string[]; by: readonly (keyof typeof reads)[] }>[] = [
  { revision: fresh, columns: [...head, ...tail], by: ['list', 'get', 'every change'] },
  { revision: fresh, columns: [...head.slice(1), ...tail], by: ['changes'] },
  { revision: fresh, columns: head.slice(1), by: ['healing'] },
  { revision: replaced, columns: tail, by: ['every change'] },
  { revision: gone, columns: tail, by: ['list of the past', 'every change'] },
  { revision: deleted, columns: head.slice(1), by: ['changes', 'every change', 'healing'] },
];

for (const { revision, columns, by } of cases)
  for (const read of by)
    test(`${read} does not serve revision ${revision} when any of its columns differs`, async (t) => {
      for (const column of columns) {
        const engine = await aStore(t);
        await t.notThrowsAsync(async () => reads[read](engine.store), 'sound before');
        spoil(engine, `UPDATE changes SET ${column} WHERE revision = ${revision}`);

        await t.throwsAsync(
          async () => reads[read](engine.store),
          { message: /not the (?:row|one) that was written|another type/ },
          column,
        );

        t.regex((await engine.store.failed).message, /damaged/, column);
        await engine.store.close();
        if (column === columns.at(-1)) await t.throwsAsync(engine.open(), { instanceOf: DamagedStore });
      }
    });

for (const read of ['list', 'get'] as const)
  test(`${read} does not serve a row that an index names for another key`, async (t) => {
    const engine = await aStore(t);
    spoil(engine, `UPDATE objects SET revision = ${first} WHERE revision = ${fresh}`);

    await t.throwsAsync(async () => reads[read](engine.store), { message: /an index names revision 1 for .*old/ });

    t.regex((await engine.store.failed).message, /damaged/);
    await engine.store.close();
    await t.throwsAsync(engine.open(), { instanceOf: DamagedStore });
  });

for (const read of ['list', 'get', 'list of the past'] as const)
  test(`${read} does not skip a missing row`, async (t) => {
    const engine = await aStore(t);
    spoil(engine, `DELETE FROM changes WHERE revision = ${read === 'list of the past' ? gone : fresh}`);

    await t.throwsAsync(async () => reads[read](engine.store), { message: /the row of .* is missing/ });

    t.regex((await engine.store.failed).message, /damaged/);
  });

/** An index that names revision 5 where it should name 1, 4 where it should name 2, and so on. */
const turnedAround = `
  DROP INDEX changes_by_resource;
  CREATE INDEX changes_by_resource ON changes (resource, (6 - revision));
  PRAGMA writable_schema = ON;
  UPDATE sqlite_schema SET sql = 'CREATE INDEX changes_by_resource ON changes (resource, revision)' WHERE name = 'changes_by_resource';`;

for (const read of ['changes', 'healing'] as const)
  test(`${read} does not serve rows in the order of a damaged index`, async (t) => {
    const engine = await aStore(t);
    spoil(engine, turnedAround);

    await t.throwsAsync(async () => reads[read](engine.store), { message: /read out of order/ });

    t.regex((await engine.store.failed).message, /damaged/);
  });

test('a damaged row makes a compaction fail before it removes anything', (t) => {
  const { database, compaction, commit } = aWritingHalf(t);
  commit(aPut(place('kept'), 'absent'), aPut(place('old'), 'absent'), aPut(place('old'), 2, { spec: 'second' }));
  database.exec('UPDATE changes SET replaced = 1 WHERE revision = 3');

  const order = { upTo: 3, tombstonesUpTo: 0, tombstonesMax: 10, budgetMs: 10 };
  t.throws(() => compaction.step(order), { message: /not the row that was written/ });

  t.deepEqual(rowsOf(database), ['1', '2', '3']);
});

test('a damaged survivor is not rewritten, and the store stops', async (t) => {
  for (const column of ["name = 'olf'", "body = x'7b7d'"]) {
    const engine = await aStore(t);
    spoil(engine, `UPDATE changes SET ${column} WHERE revision = ${first}`);

    t.is((await engine.store.writer.submit(aDelete(place('old')))).kind, 'unavailable', column);

    t.regex((await engine.store.failed).message, /damaged/, column);
  }
});
