/**
 * Checks every statement of the store by EXPLAIN QUERY PLAN. None reads a whole table that grows,
 * and each uses the index that it names. A comparison of row values must be a range of the index,
 * not a filter.
 *
 * The test listens to `prepare` while the store opens, so it checks the very texts that run. It
 * then searches the sources for templates marked as SQL, so that it misses none.
 */
import { Database } from '../../src/store/sqlite/driver.js';
import { test } from '../support/test.js';
import { Committer } from '../../src/store/sqlite/committer.js';
import { Compaction } from '../../src/store/sqlite/compaction.js';
import { openWriter, type Connection } from '../../src/store/sqlite/database.js';
import { SqliteEngine } from '../support/store/sqlite-engine.js';
import { storeDirectory } from '../support/test-store.js';
import { findProjectRoot, readSources } from './sources.js';

/**
 * Tables that stay small. Their rows: a type, a shard, both, a link, an epoch, a minute of the
 * history, the types of one cluster, buckets of the log.
 */
const small = ['epochs', 'resources', 'r', 'shards', 'slices', 's', 'links', 'moments', 'CONSTANT ROW', 'types', 'buckets'];

/** Statements that sort what an index has found: a few rows each. */
const sorted: readonly RegExp[] = [
  /^SELECT id FROM resources WHERE api_group/, // the identities of one resource
  /ORDER BY revision DESC LIMIT 1$/, // the namesakes of one object
];

const flat = (sql: string): string => sql.replaceAll(/\s+/g, ' ').trim();

function planOf(database: Connection, sql: string): readonly string[] {
  const names = [...sql.matchAll(/@(\w+)/g)].map(([, name = '']) => [name, null]);
  const values = names.length > 0 ? [Object.fromEntries(names)] : (sql.match(/\?/g) ?? []).map(() => null);
  const explain = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`);
  return explain.all(...values).map(({ detail }) => detail);
}

function planViolations(database: Connection, text: string): readonly string[] {
  const sql = flat(text);
  const plan = planOf(database, sql);
  const has = (part: string): boolean => plan.some((detail) => detail.includes(part));
  const violations: string[] = [];

  for (const detail of plan) {
    const [, table] = /^SCAN (CONSTANT ROW|\w+)/.exec(detail) ?? [];
    // The tombstones' index holds only tombstones, and a limit ends the walk.
    const isLimitedTombstones = detail.endsWith('USING COVERING INDEX changes_tombstones') && / LIMIT /.test(sql);
    if (table !== undefined && !small.includes(table) && !isLimitedTombstones) violations.push(`reads all of ${table}`);
    if (detail.includes('AUTOMATIC')) violations.push('makes an index of its own');
    if (detail.startsWith('USE TEMP B-TREE') && !sorted.some((known) => known.test(sql))) violations.push('sorts');
  }
  if (/ OFFSET /.test(sql)) violations.push('walks over what it leaves out');
  for (const [, index] of sql.matchAll(/INDEXED BY (\w+)/g))
    if (!has(`INDEX ${index} `) && !plan.some((detail) => detail.endsWith(`INDEX ${index}`))) violations.push(`does not use ${index}`);
  for (const [, columns = ''] of sql.matchAll(/\(([\w, ]+)\) > \(/g))
    if (!has(`(${columns.replaceAll(' ', '')})>(`)) violations.push(`filters by (${columns})`);
  return violations.map((violation) => `${violation}: ${sql}\n    ${plan.join('\n    ')}`);
}

/** Templates marked as SQL of which no statement was prepared. Spliced parts match anything. */
function unprepared(sources: readonly { path: string; text: string }[], statements: readonly string[]): readonly string[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\/\*sql\*\/\s*`([^`]*)`/g)]
      .map(([, template = '']) => flat(template))
      .filter((template) => {
        const parts = template.split(/\$\{[^}]*\}/).map((part) => part.replaceAll(/[.*+?^$()|[\]{}\\]/g, String.raw`\$&`));
        const pattern = new RegExp(`^${parts.join('.*')}$`);
        return !statements.some((statement) => pattern.test(flat(statement)));
      })
      .map((template) => `${path}: never prepared: ${template}`),
  );
}

test('every statement uses its index and reads no table that grows', async (t) => {
  const statements = new Set<string>();
  const { prepare } = Database.prototype;
  Database.prototype.prepare = function listen(this: Connection, sql: string) {
    // Transactions are statements too, without a plan.
    if (/^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(sql)) statements.add(sql);
    return prepare.call(this, sql);
  } as typeof prepare;
  t.teardown(() => (Database.prototype.prepare = prepare));
  const engine = await SqliteEngine.start(t, {}, { directory: storeDirectory(t) });
  const database = openWriter(engine.file('strata.db'));
  t.teardown(() => database.close());
  // Statements that the committer's thread prepares itself.
  void new Committer(database, { momentIntervalMs: 60_000, keptNames: new Map() });
  void new Compaction(database);
  Database.prototype.prepare = prepare;

  // A check reads everything, on request or after a crash, while nobody else reads.
  const sources = readSources(findProjectRoot(), ['src/store']).filter(({ path }) => path !== 'src/store/sqlite/check.ts');
  t.true(statements.size > 30);
  t.deepEqual(unprepared(sources, [...statements]), []);
  const unmarked = sources
    .filter(({ text }) => /\bprepare(?:<[^(]*>)?\(\s*[`'](?!SELECT sqlite_version)/.test(text))
    .map(({ path }) => path);
  t.deepEqual(unmarked, [], 'statements must be marked as SQL, so that they are found here');
  t.deepEqual(
    [...statements].flatMap((sql) => planViolations(database, sql)),
    [],
  );
});

test('a plan that reads a whole table, filters by row values, sorts, or does not use its index is found', (t) => {
  const database = new Database(':memory:');
  t.teardown(() => database.close());
  database.exec(`
    CREATE TABLE changes (revision INTEGER PRIMARY KEY, resource INTEGER, kind INTEGER, name TEXT);
    CREATE INDEX changes_by_resource ON changes (resource, revision);
    CREATE INDEX changes_tombstones ON changes (revision) WHERE kind = 2;
    CREATE TABLE objects (shard TEXT, name TEXT, revision INTEGER, PRIMARY KEY (shard, name)) WITHOUT ROWID;
    CREATE TABLE moments (revision INTEGER PRIMARY KEY, at_ms INTEGER)`);
  const cases: [string, RegExp][] = [
    ['SELECT name FROM changes WHERE name = ?', /^reads all of changes/],
    ['SELECT revision FROM objects WHERE revision > ?', /^reads all of objects/],
    ['SELECT revision FROM changes INDEXED BY changes_tombstones WHERE kind = 2', /^reads all of changes/],
    ['SELECT name FROM changes WHERE resource = ? ORDER BY name', /^sorts/],
    ['SELECT a.name FROM objects AS a, objects AS b WHERE a.revision = b.revision', /^reads all of a/],
    ['SELECT name FROM objects WHERE shard = ? AND (revision, name) > (?, ?)', /^filters by \(revision, name\)/],
    [
      'SELECT revision FROM changes INDEXED BY changes_tombstones WHERE kind = 2 ORDER BY revision DESC LIMIT 1 OFFSET ?',
      /^walks over what it leaves out/,
    ],
  ];

  for (const [sql, expected] of cases) t.regex(planViolations(database, sql)[0] ?? 'nothing found', expected, sql);
  for (const sql of [
    'SELECT name FROM changes WHERE revision > ? ORDER BY revision LIMIT ?',
    'SELECT revision FROM changes INDEXED BY changes_tombstones WHERE kind = 2 AND revision <= ? ORDER BY revision LIMIT ?',
    'SELECT name FROM changes INDEXED BY changes_by_resource WHERE resource = @resource AND revision > @after ORDER BY revision',
    'SELECT name FROM objects WHERE (shard, name) > (?, ?) ORDER BY shard, name',
    'SELECT revision FROM moments WHERE at_ms <= ?',
  ])
    t.deepEqual(planViolations(database, sql), [], sql);
});

test('a statement that was never prepared is found, whatever is spliced into it', (t) => {
  const text = 'a(/*sql*/ `SELECT a\n  FROM t WHERE k = ${put}`); b(/*sql*/ `DELETE FROM t`);';

  t.deepEqual(unprepared([{ path: 'a.ts', text }], ['SELECT a FROM t WHERE k = 1']), ['a.ts: never prepared: DELETE FROM t']);
  t.deepEqual(unprepared([{ path: 'a.ts', text }], ['SELECT a FROM t WHERE k = 1', 'DELETE  FROM t']), []);
});
