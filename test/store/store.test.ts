import test from 'ava';
import fc from 'fast-check';
import type { Change } from '../../src/domain/change.js';
import type { Key } from '../../src/domain/key.js';
import { Refused } from '../../src/domain/errors.js';
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import type { Scope } from '../../src/domain/scope.js';
import type { SqliteStore } from '../../src/store/sqlite/store.js';
import { aDelete, aKey, aPut, aScope } from '../support/objects.js';
import { aStore, openTestStore, storeDirectory, storeLimits, write } from '../support/test-store.js';

async function list(store: SqliteStore, scope: Scope, revision = store.published, between: () => Promise<unknown> = async () => {}): Promise<string[]> {
  const snapshot = store.snapshot(scope, revision);
  const found: string[] = [];
  let after: Key | undefined;
  try {
    do {
      const page = await snapshot.page(after);
      found.push(...page.objects.map(({ key, revision: at }) => `${key.shard}/${key.cluster}/${key.name}@${at}`));
      after = page.next;
      await between();
    } while (after !== undefined);
  } finally {
    snapshot.close();
  }
  return found;
}

async function changes(store: SqliteStore, scope: Scope, after: number): Promise<Change[]> {
  const all: Change[] = [];
  for await (const chunk of store.changes(scope, { after, upTo: store.published })) all.push(...chunk);
  return all;
}

test('a create needs an absent key, an update the revision it names, and what is refused changes nothing', async (t) => {
  const store = await aStore(t);

  const created = await write(store, aPut({}, 'absent'));
  t.deepEqual(await store.submit(aPut({}, 'absent')), { kind: 'refused', why: 'exists' });
  t.deepEqual(await store.submit(aPut({}, created.revision + 1)), { kind: 'refused', why: 'changed' });
  t.deepEqual(await store.submit(aPut({ name: 'none' }, 1)), { kind: 'refused', why: 'absent' });
  t.deepEqual(await store.submit(aDelete({ name: 'none' })), { kind: 'refused', why: 'absent' });
  t.is(store.published, created.revision);
  const updated = await write(store, aPut({}, created.revision, { spec: { n: 2 } }));
  t.is(updated.revision, created.revision + 1);
  t.is((await store.get(aKey()))?.revision, updated.revision);
});

test('what was answered is published, in the order of submission, one revision each', async (t) => {
  const store = await aStore(t);

  const outcomes = await Promise.all(Array.from({ length: 1000 }, (_, i) => write(store, aPut({ name: `n${i}` }, 'absent'))));

  t.deepEqual(outcomes.map(({ revision }) => revision), Array.from({ length: 1000 }, (_, i) => i + 1));
  t.is(store.published, 1000);
});

test('a delete carries the last content, in the outcome and in the log, and a create after it is a new object', async (t) => {
  const store = await aStore(t);
  const { object } = await write(store, aPut({}, 'absent', { spec: { n: 1 } }));

  const deleted = await write(store, aDelete({}));
  await write(store, aPut({}, 'absent', { spec: { n: 2 } }));

  t.deepEqual(Buffer.from(deleted.object.body.bytes), Buffer.from(object.body.bytes));
  const log = await changes(store, aScope(), 0);
  t.deepEqual(log.map((change) => [change.kind, change.revision, change.kind === 'put' && change.created]), [['put', 1, true], ['delete', 2, false], ['put', 3, true]]);
  t.is(log[1]?.previous()?.revision, 1);
});

test('a snapshot shows its revision exactly, whatever is written, deleted and made again while it is read', async (t) => {
  const store = await aStore(t, { snapshot: { rowsMax: 7, bytesMax: 1_000_000, resurrectedMax: 1000 } });
  for (let i = 0; i < 60; i++) await write(store, aPut({ shard: i % 2 ? 'amber' : 'birch', cluster: `c${i % 5}`, name: `n${i}` }, 'absent'));
  const expected = await list(store, aScope());
  const inCluster = await list(store, aScope({ cluster: 'c3' }));
  const at = store.published;
  let step = 0;
  const disturb = async (): Promise<void> => {
    for (let i = step; i < 60; i += 9) {
      const place = { shard: i % 2 ? 'amber' : 'birch', cluster: `c${i % 5}`, name: `n${i}` };
      const current = await store.get(aKey(place));
      if (current === undefined) await write(store, aPut(place, 'absent', { spec: { step } }));
      else if (step % 2) await write(store, aDelete(place));
      else await write(store, aPut(place, current.revision, { spec: { step } }));
      await write(store, aPut({ ...place, name: `extra${step}-${i}` }, 'absent'));
    }
    step += 1;
  };

  t.deepEqual(await list(store, aScope(), at, disturb), expected);
  t.deepEqual(await list(store, aScope({ cluster: 'c3' }), at, disturb), inCluster);
  t.is(inCluster.length, 12);
  t.deepEqual(await list(store, aScope(), at), expected);
});

test('a scope selects by shard, cluster, namespace, name and identity, all identities included', async (t) => {
  const store = await aStore(t);
  await write(store, aPut({ shard: 'amber', cluster: 'a1', namespace: 'x', name: 'p', resource: 'things', identity: 'h1' }, 'absent'));
  await write(store, aPut({ shard: 'birch', cluster: 'a1', namespace: 'y', name: 'p', resource: 'things', identity: 'h1' }, 'absent'));
  await write(store, aPut({ shard: 'birch', cluster: 'b1', namespace: 'x', name: 'q', resource: 'things', identity: 'h2' }, 'absent'));
  const things = { resource: 'things' };

  t.is((await list(store, aScope({ ...things, identity: 'h1' }))).length, 2);
  t.is((await list(store, aScope({ ...things, identity: '*' }))).length, 3);
  t.is((await list(store, aScope({ ...things, identity: '*', namespace: 'x' }))).length, 2);
  t.deepEqual(await list(store, aScope({ ...things, identity: '*', name: 'q' })), ['birch/b1/q@3']);
  t.deepEqual(await list(store, aScope({ ...things, identity: 'h1', shard: 'birch' })), ['birch/a1/p@2']);
  t.deepEqual(await list(store, aScope({ ...things, identity: 'h2', cluster: 'a1' })), []);
  t.is(await store.count(aScope({ ...things, identity: '*' }), undefined, 100), 3);
  t.is(await store.count(aScope({ ...things, identity: '*' }), undefined, 2), 2);
});

test('when a namesake on another shard is deleted, the survivor is stated again behind the delete', async (t) => {
  const store = await aStore(t);
  await write(store, aPut({ shard: 'amber' }, 'absent', { spec: { winner: false } }));
  await write(store, aPut({ shard: 'birch' }, 'absent', { spec: { winner: true } }));

  const deleted = await write(store, aDelete({ shard: 'amber' }));

  t.is(store.published, deleted.revision + 1);
  const [gone, again] = await changes(store, aScope(), 2);
  t.like(gone, { kind: 'delete', revision: 3 });
  t.like(again, { kind: 'put', revision: 4, created: false });
  t.is(String(again?.key.shard), 'birch');
  t.is((await store.get(aKey({ shard: 'birch' })))?.revision, 4);
});

test('a canonical path leads to its logical cluster, moves with the newest annotation, and goes with the last object', async (t) => {
  const store = await aStore(t);
  const path = parseCanonicalPath('root:acme')!;
  const moved = parseCanonicalPath('root:new')!;
  const heard: string[][] = [];
  store.subscribe(({ movedPaths }) => heard.push([...movedPaths]));

  await write(store, aPut({ name: 'one' }, 'absent', { path: 'root:acme' }));
  await write(store, aPut({ name: 'two' }, 'absent'));
  t.deepEqual(await store.clustersAt(path), ['acme' as never]);
  await write(store, aPut({ name: 'three' }, 'absent', { path: 'root:new' }));
  t.deepEqual(await store.clustersAt(path), []);
  t.deepEqual(await store.clustersAt(moved), ['acme' as never]);
  for (const name of ['one', 'two', 'three']) await write(store, aDelete({ name }));
  t.deepEqual(await store.clustersAt(moved), []);
  t.deepEqual(heard, [['root:acme'], [], ['root:acme', 'root:new'], [], [], ['root:new']]);
});

test('history and versions survive a restart', async (t) => {
  const directory = storeDirectory(t);
  const before = await openTestStore(directory);
  for (let i = 0; i < 20; i++) await write(before, aPut({ name: `n${i}` }, 'absent'));
  await write(before, aDelete({ name: 'n3' }));
  const texts = [before.format(5), before.format(21)];
  await before.close();

  const after = await openTestStore(directory);
  t.teardown(() => after.close());

  t.is(after.published, 21);
  t.deepEqual(texts.map((text) => after.locate(text)), [{ kind: 'ours', revision: 5 }, { kind: 'ours', revision: 21 }]);
  t.is((await changes(after, aScope(), 0)).length, 21);
  t.is((await write(after, aPut({ name: 'next' }, 'absent'))).revision, 22);
});

test('a second server on the same directory is refused in words', async (t) => {
  const directory = storeDirectory(t);
  const first = await openTestStore(directory);
  t.teardown(() => first.close());

  await t.throwsAsync(openTestStore(directory), { message: /is in use by another server/ });
});

test('compaction keeps live objects and tombstones, and refuses readers below it', async (t) => {
  const wakes: (() => void)[] = [];
  const clock = { now: () => 1_000_000_000, after: (_: number, task: () => void) => (wakes.push(task), () => {}) };
  const store = await openTestStore(storeDirectory(t), { history: { ...storeLimits.history, historyChangesMax: 10 } }, clock);
  t.teardown(() => store.close());
  let revision = (await write(store, aPut({ name: 'busy' }, 'absent'))).revision;
  await write(store, aPut({ name: 'gone' }, 'absent'));
  await write(store, aPut({ name: 'quiet' }, 'absent'));
  await write(store, aDelete({ name: 'gone' }));
  for (let i = 0; i < 500; i++) revision = (await write(store, aPut({ name: 'busy' }, revision, { spec: { i } }))).revision;

  for (let i = 0; i < 20 && wakes.length > 0; i++) {
    wakes.splice(0).forEach((wake) => wake());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }

  t.is(store.compacted, store.published - 10);
  t.is((await list(store, aScope())).length, 2);
  t.is((await changes(store, aScope(), store.compacted)).length, 10);
  await t.throwsAsync(changes(store, aScope(), store.compacted - 1), { instanceOf: Refused });
  t.throws(() => store.snapshot(aScope(), store.compacted - 1), { instanceOf: Refused });
  t.true(store.remembers(2));
  const touched: string[] = [];
  for await (const keys of store.touched(aScope(), { after: 2, upTo: store.published })) touched.push(...keys.map(({ name }) => name));
  t.true(touched.includes('gone'));
});

test('a full queue is answered 429 and keeps nothing of what it refuses', async (t) => {
  const store = await aStore(t, { queue: { mutationsMax: 5, bytesMax: 1_000_000, batchMutationsMax: 512, batchBytesMax: 1_000_000 } });

  const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => store.submit(aPut({ name: `n${i}` }, 'absent'))));

  const written = outcomes.filter(({ kind }) => kind === 'written').length;
  t.is(written, 6, 'one in flight and five waiting');
  t.like(outcomes.at(-1), { kind: 'unavailable', refusal: { reason: 'TooManyRequests' } });
  t.is((await list(store, aScope())).length, written);
});

test('the store equals a map, at every revision it has been through', async (t) => {
  const names = ['a', 'b', 'c'];
  const steps = fc.array(fc.record({ name: fc.constantFrom(...names), shard: fc.constantFrom('amber', 'birch'), kind: fc.constantFrom('put', 'put', 'delete') }), { minLength: 1, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const store = await openTestStore(storeDirectory(t));
      try {
        const states: Map<string, number>[] = [new Map()];
        const model = new Map<string, number>();
        store.subscribe(({ changes: committed }) => {
          for (const change of committed) {
            const at = `${change.key.shard}/${change.key.cluster}/${change.key.name}`;
            if (change.kind === 'put') model.set(at, change.revision);
            else model.delete(at);
            states[change.revision] = new Map(model);
          }
        });
        for (const { name, shard, kind } of sequence) {
          const current = await store.get(aKey({ name, shard }));
          if (kind === 'put') await write(store, aPut({ name, shard }, current?.revision ?? 'absent'));
          else if (current !== undefined) await write(store, aDelete({ name, shard }, current.revision));
        }
        for (let revision = 0; revision <= store.published; revision++) {
          const expected = [...states[revision]!].map(([at, held]) => `${at}@${held}`).toSorted();
          const found = await list(store, aScope(), revision);
          if (JSON.stringify(found.toSorted()) !== JSON.stringify(expected)) throw new Error(`at ${revision}: ${found} is not ${expected}`);
        }
      } finally {
        await store.close();
      }
    }),
    { numRuns: 15 },
  );
  t.pass();
});
