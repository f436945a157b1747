/**
 * What reads and deletes cost beside many unrelated rows. The fastest of several rounds counts,
 * because other programs use the machine too.
 */
import { test } from '../support/test.js';
import type { Key } from '../../src/domain/key.js';
import type { Revision } from '../../src/domain/revision.js';
import type { Scope } from '../../src/domain/scope.js';
import { openReader } from '../../src/store/sqlite/database.js';
import type { Mutation } from '../../src/domain/mutation.js';
import type { SqliteStore } from '../../src/store/sqlite/store.js';
import { list, mustWrite } from '../contract/read-all.js';
import { aDelete, aKey, aPut, aScope, type Place } from '../support/objects.js';
import { fastestAnswerMs } from '../support/fastest.js';
import { aDrop } from '../support/pushes.js';
import { aWritingHalf } from '../support/store/a-database.js';
import { SqliteEngine } from '../support/store/sqlite-engine.js';

const rounds = 5;

/**
 * Reads a page as a request does: from a snapshot of its own, after a key, until there are 500
 * objects.
 */
async function page(store: SqliteStore, scope: Scope, { revision, after }: { revision: Revision; after: Key }): Promise<number> {
  const snapshot = store.objects.snapshot(scope, revision);
  let found = 0;
  for (let next: Key | undefined = after; next !== undefined && found < 500;) {
    const read = await snapshot.page(next);
    found += read.objects.length;
    ({ next } = read);
  }
  snapshot.close();
  return found;
}

test('the cost of a page after a key depends on its objects alone, not on those deleted or short-lived since', async (t) => {
  const { store } = await SqliteEngine.start(t, { snapshot: { rowsMax: 128 }, queue: { mutationsMax: 100_000 } });
  const written = async (count: number, make: (i: number) => Parameters<typeof store.writer.submit>[0]): Promise<void> => {
    for (let i = 0; i < count; i++) void store.writer.submit(make(i));
    await mustWrite(store, aPut({ name: `end${store.revisions.published}` }, 'absent'));
  };
  const name = (i: number): string => `n${String(i).padStart(6, '0')}`;
  const passing = (i: number): Place => ({ name: `${name(i % 500)}-${i}`, cluster: `c${i % 5}` });
  await written(30_000, (i) => aPut({ name: name(i), cluster: `c${i % 5}` }, 'absent'));
  // A shard on which nothing is ever deleted, for comparison.
  await written(1_000, (i) => aPut({ name: name(i), shard: 'birch' }, 'absent'));
  const revision = store.revisions.published;
  await written(25_000, (i) => aDelete({ name: name(i + 2_000), cluster: `c${(i + 2_000) % 5}` }));
  await written(25_000, (i) => aPut(passing(i), 'absent'));
  await written(25_000, (i) => aDelete(passing(i)));

  const scopes: [string, Scope, Key][] = [
    ['everywhere', aScope(), aKey({ name: name(0), cluster: 'c0' })],
    ['everywhere, among deleted ones', aScope(), aKey({ name: name(10_000), cluster: 'c0' })],
    ['one cluster', aScope({ cluster: 'c1' }), aKey({ name: name(1), cluster: 'c1' })],
    ['one shard', aScope({ shard: 'amber' }), aKey({ name: name(0), cluster: 'c0' })],
  ];
  const [plain, first] = [aScope({ shard: 'birch' }), aKey({ name: name(0), shard: 'birch' })];
  const plainMs = await fastestAnswerMs(() => page(store, plain, { revision, after: first }), rounds);
  for (const [title, scope, after] of scopes) {
    t.true((await page(store, scope, { revision, after })) >= 500, title);
    const ms = await fastestAnswerMs(() => page(store, scope, { revision, after }), rounds);
    t.log(`${title}: 500 objects and more in ${ms.toFixed(1)} ms, 50,000 deletes since; ${plainMs.toFixed(1)} ms without any`);
    t.true(ms <= 5 * plainMs, `${title}: ${ms} ms`);
  }
});

test('the store counts the objects after a page only if that costs little', async (t) => {
  const { store } = await SqliteEngine.start(t, { queue: { mutationsMax: 100_000 } });
  for (let i = 0; i < 25_000; i++) void store.writer.submit(aPut({ name: `n${i}`, namespace: i % 2 ? 'x' : 'y' }, 'absent'));
  await mustWrite(store, aPut({ name: 'end' }, 'absent'));
  const [all, some] = [aScope({ shard: 'amber', cluster: 'acme' }), aScope({ namespace: 'y' })];
  const after = aKey({ namespace: 'y', name: 'n6' });

  t.is(await store.objects.count(all, undefined, 10_000), undefined);
  t.is(await store.objects.count(some, undefined, 10_000), undefined);
  t.true(((await store.objects.count(some, after, 10_000)) ?? 0) > 1_000);
  for (const scope of [all, some]) {
    const ms = await fastestAnswerMs(() => store.objects.count(scope, undefined, 10_000), rounds);
    t.log(`10,000 keys looked at in ${ms.toFixed(1)} ms`);
    t.true(ms <= 8, `${ms} ms`);
  }
});

test('a delete does not read the objects of its cluster’s namesake on another shard', (t) => {
  const half = aWritingHalf(t);
  for (let i = 0; i < 50; i++)
    half.commit(...Array.from({ length: 1000 }, (_, j) => aPut({ shard: 'birch', name: `n${i * 1000 + j}` }, 'absent')));
  let shortest = Infinity;

  for (let round = 0; round < 3; round++) {
    half.commit(...Array.from({ length: 200 }, (_, i) => aPut({ name: `z${i}`, cluster: 'acme' }, 'absent', { path: 'root:a' })));
    const startedMs = performance.now();
    half.commit(...Array.from({ length: 200 }, (_, i) => aDelete({ name: `z${i}`, cluster: 'acme' })));
    shortest = Math.min(shortest, performance.now() - startedMs);
  }

  t.log(`200 deletes beside 50,000 namesakes committed in ${shortest.toFixed(1)} ms`);
  t.true(shortest <= 100, `${shortest} ms`);
});

test('reading a type takes time linear in its identities, and compaction removes identities without objects and history', async (t) => {
  const engine = await SqliteEngine.start(t, { queue: { mutationsMax: 100_000 }, history: { historyAgeMs: 0, tombstoneAgeMs: 0 } });
  const identities = Array.from({ length: 4_000 }, (_, i) => `hash-${i}`);
  const write = async (mutations: readonly Mutation[]): Promise<void> => {
    for (const mutation of mutations) void engine.store.writer.submit(mutation);
    await mustWrite(engine.store, aPut({ name: `end${engine.store.revisions.published}` }, 'absent'));
  };
  await write(identities.slice(0, 400).map((identity) => aPut({ identity, resource: 'few' }, 'absent')));
  await write(identities.map((identity) => aPut({ identity, resource: 'many' }, 'absent')));
  const scopes = (place: Place): Scope[] => [aScope({ ...place, identity: '*' }), aScope({ ...place, identity: '*', name: 'nowhere' })];

  for (const [few, many] of scopes({ resource: 'few' }).map((scope, i) => [scope, scopes({ resource: 'many' })[i]!] as const)) {
    const found = (await list(engine.store, many)).map(({ key }) => key.resource.identity);
    t.deepEqual(found, many.name === undefined ? identities.toSorted() : []);
    const fewMs = await fastestAnswerMs(() => list(engine.store, few), rounds);
    const manyMs = await fastestAnswerMs(() => list(engine.store, many), rounds);
    t.true(manyMs < 40 * fewMs + 20, `${manyMs} ms for 4,000, ${fewMs} ms for 400`);
  }

  await write(identities.slice(1).map((identity) => aDelete({ identity, resource: 'many' })));
  for (const identity of identities.slice(1)) await engine.store.writer.lane().push([aDrop({ identity, resource: 'many' })]);
  engine.clock.advance(10_000);
  await write([]);
  await engine.compact();
  await engine.restart();
  const database = openReader(engine.file('strata.db'));
  t.teardown(() => database.close());
  t.deepEqual(database.prepare(`SELECT identity FROM resources WHERE resource = 'many'`).pluck().all(), ['hash-0']);
});
