/**
 * What every engine behind the Store port must do. The suite gets an engine as a factory and knows
 * nothing else of it. What only one engine has (files, locks, epochs) is tested beside that engine.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import { Refused } from '../../src/domain/errors.js';
import type { KeptNames } from '../../src/domain/kept-names.js';
import type { Key } from '../../src/domain/key.js';
import type { Mutation, Outcome } from '../../src/domain/mutation.js';
import { formatPathEntry, pathEntryBody, pathGroup, pathOfEntry, type PathEntry } from '../../src/domain/path-entry.js';
import type { Store } from '../../src/domain/store-port.js';
import { aDelete, aKey, aPut, aScope, clusterName, type Place } from '../support/objects.js';
import { changesBehind, changeText, list, listTexts, mustWrite, textOf, touchedBehind, type Written } from './read-all.js';

export type Engine = {
  /** The present store; `restart` replaces it. */
  readonly store: Store;
  readonly traits: EngineTraits;
  /** Closes the store and opens it again on what it has kept. */
  restart(): Promise<Store>;
  /** Resolves when the store has compacted as far as its bounds require. */
  compact(): Promise<void>;
};

/** Behaviour that only some engines have. */
export type EngineTraits = Readonly<{
  /**
   * Revisions of mutations that were submitted together rise in order of submission, and nothing
   * else takes a revision.
   */
  ordersWrites: boolean;
  /** The store knows that a key was deleted for longer than it knows the last content. */
  keepsTombstones: boolean;
  /** The time of a slice's last change survives a restart. */
  keepsTimes: boolean;
  /**
   * A logical cluster keeps its path until its last object goes, even if no object names the path
   * any more.
   */
  keepsPaths: boolean;
}>;

/** Bounds that a test narrows; any other is too wide to matter. */
export type EngineBounds = Readonly<{
  changesMax?: number;
  tombstonesMax?: number;
  mutationsMax?: number;
  pageRowsMax?: number;
  pageBytesMax?: number;
  keptNames?: KeptNames;
}>;

export function registerStoreContract(open: (t: ExecutionContext, bounds: EngineBounds) => Promise<Engine>): void {
  const opened = async (t: ExecutionContext, bounds: EngineBounds = {}): Promise<Store> => (await open(t, bounds)).store;

  // Writer

  test('a create needs an absent key, an update needs the revision that it names, and a refused mutation changes nothing', async (t) => {
    const store = await opened(t);

    const created = await mustWrite(store, aPut({}, 'absent'));
    t.deepEqual(await store.writer.submit(aPut({}, 'absent')), { kind: 'refused', why: 'exists' });
    t.deepEqual(await store.writer.submit(aPut({}, created.revision + 1)), { kind: 'refused', why: 'changed' });
    t.deepEqual(await store.writer.submit(aPut({ name: 'none' }, 1)), { kind: 'refused', why: 'absent' });
    t.deepEqual(await store.writer.submit(aDelete({ name: 'none' })), { kind: 'refused', why: 'absent' });
    t.deepEqual(await store.writer.submit(aDelete({}, created.revision + 1)), { kind: 'refused', why: 'changed' });
    t.true(store.revisions.published >= created.revision);
    const updated = await mustWrite(store, aPut({}, created.revision, { spec: { n: 2 } }));
    t.true(updated.revision > created.revision);
    t.is((await store.objects.get(aKey()))?.revision, updated.revision);
    t.is((await mustWrite(store, aDelete({}, updated.revision))).object.revision, updated.revision);
  });

  test('an answered write is published with its own revision; revisions follow the order of submission if the engine orders writes', async (t) => {
    const { store, traits } = await open(t, {});
    const answered: number[] = [];

    await Promise.all(
      Array.from({ length: 1000 }, async (_, i) => {
        const { revision } = await mustWrite(store, aPut({ name: `n${i}` }, 'absent'));
        t.true(store.revisions.published >= revision);
        answered.push(revision);
      }),
    );

    const rising = answered.toSorted((a, b) => a - b);
    if (traits.ordersWrites) t.deepEqual(answered, rising);
    t.is(new Set(answered).size, 1000);
    t.is(rising.at(-1), (await changesBehind(store, aScope(), store.revisions.compacted)).at(-1)?.revision);
  });

  test('waiting mutations of one key are decided one after the other', async (t) => {
    const store = await opened(t);
    const from = store.revisions.published;

    const outcomes = await Promise.all([
      store.writer.submit(aPut({}, 'absent', { spec: 1 })),
      store.writer.submit(aPut({}, 'absent', { spec: 2 })),
      store.writer.submit(aDelete({})),
      store.writer.submit(aPut({}, 'absent', { spec: 3 })),
      store.writer.submit(aDelete({}, 1)),
    ]);

    t.deepEqual(
      outcomes.map((outcome) => (outcome.kind === 'refused' ? outcome.why : outcome.kind)),
      ['written', 'exists', 'written', 'written', 'changed'],
    );
    t.deepEqual(
      (await changesBehind(store, aScope(), from)).map(({ kind }) => kind),
      ['put', 'delete', 'put'],
    );
  });

  test('a full queue answers 429 and keeps nothing of what it refuses', async (t) => {
    const store = await opened(t, { mutationsMax: 5 });

    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => store.writer.submit(aPut({ name: `n${i}` }, 'absent'))));

    const written = outcomes.filter(({ kind }) => kind === 'written').length;
    t.true(written >= 5 && written < 20, `${written} written`);
    t.like(outcomes.at(-1), { kind: 'unavailable', refusal: { reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } } });
    t.is((await list(store, aScope())).length, written);
    t.is((await store.writer.submit(aPut({ name: 'later' }, 'absent'))).kind, 'written');
  });

  test('a store that closes decides mutations submitted earlier, and refuses later ones', async (t) => {
    const engine = await open(t, {});
    const before = Array.from({ length: 50 }, (_, i) => engine.store.writer.submit(aPut({ name: `n${i}` }, 'absent')));

    const closed = engine.store.close();
    const late = await engine.store.writer.submit(aPut({ name: 'late' }, 'absent'));
    await closed;

    t.true((await Promise.all(before)).every(({ kind }) => kind === 'written'));
    t.like(late, { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable' } });
    await engine.store.close();
    t.is((await list(await engine.restart(), aScope())).length, 50);
  });

  test('reads, lists, the log and commits return the bytes that were written', async (t) => {
    const store = await opened(t);
    const mutation = aPut({ name: 'bytes' }, 'absent', { labels: { a: 'b' }, spec: { text: 'ü \u0001 "\\', big: 1e300 } });
    const wanted = mutation.kind === 'put' ? mutation.body : undefined;
    const heard: unknown[] = [];
    store.commits.subscribe(({ changes }) => heard.push(...changes.map((change) => change.kind === 'put' && change.object.body)));

    const { object } = await mustWrite(store, mutation);

    const bodies = [object.body, (await store.objects.get(mutation.key))?.body, (await list(store, aScope()))[0]?.body];
    const [change] = await changesBehind(store, aScope(), object.revision - 1);
    for (const body of [...bodies, ...heard, change?.kind === 'put' && change.object.body]) {
      const { bytes, ...rest } = body as NonNullable<typeof wanted>;
      t.deepEqual(Buffer.from(bytes), Buffer.from(wanted!.bytes));
      t.deepEqual(rest, { version: wanted!.version, marks: wanted!.marks });
    }
  });

  // Commits

  test('a commit is published in the tick in which it becomes visible, before its writers are answered', async (t) => {
    const store = await opened(t);
    const order: string[] = [];
    const seen: Promise<unknown>[] = [];
    const subscription = store.commits.subscribe((commit) => {
      t.is(store.revisions.published, commit.revision);
      t.deepEqual(
        commit.changes.map(({ revision }) => revision),
        commit.changes.map(({ revision }) => revision).toSorted((a, b) => a - b),
      );
      for (const { key, revision } of commit.changes) {
        order.push(`heard ${key.name}`);
        seen.push(store.objects.get(key).then((object) => t.is(object?.revision, revision)));
      }
    });

    await Promise.all(
      ['a', 'b', 'c'].map(async (name) => order.push(`answered ${(await mustWrite(store, aPut({ name }, 'absent'))).object.key.name}`)),
    );
    await Promise.all(seen);
    subscription.cancel();
    await mustWrite(store, aPut({ name: 'unheard' }, 'absent'));

    for (const name of ['a', 'b', 'c']) t.true(order.indexOf(`heard ${name}`) < order.indexOf(`answered ${name}`));
    t.false(order.includes('heard unheard'));
  });

  test('commits show the same as the log: kind, created, and the replaced object', async (t) => {
    const store = await opened(t);
    const heard: string[] = [];
    store.commits.subscribe(({ changes }) => heard.push(...changes.map(changeText)));

    const first = await mustWrite(store, aPut({ name: 'a' }, 'absent'));
    await mustWrite(store, aPut({ name: 'a' }, first.revision));
    await Promise.all([
      store.writer.submit(aPut({ name: 'b' }, 'absent')),
      store.writer.submit(aDelete({ name: 'a' })),
      store.writer.submit(aPut({ name: 'a' }, 'absent')),
      store.writer.submit(aDelete({ name: 'b' })),
    ]);

    const logged = (await changesBehind(store, aScope(), first.revision - 1)).map(changeText);
    t.deepEqual(heard, logged);
    t.deepEqual(logged.map((text) => text.split(' ')[1]).toSorted(), ['create', 'create', 'create', 'delete', 'delete', 'update']);
  });

  test('a commit in which everything was refused is not published', async (t) => {
    const store = await opened(t);
    await mustWrite(store, aPut({}, 'absent'));
    store.commits.subscribe(() => t.fail('nothing changed'));

    t.is((await store.writer.submit(aPut({}, 'absent'))).kind, 'refused');
  });

  // Objects

  test('a delete carries the last content, in the outcome and in the log, and a later create makes a new object', async (t) => {
    const store = await opened(t);
    const { object } = await mustWrite(store, aPut({}, 'absent', { spec: { n: 1 } }));

    const deleted = await mustWrite(store, aDelete({}));
    const again = await mustWrite(store, aPut({}, 'absent', { spec: { n: 2 } }));

    t.deepEqual(Buffer.from(deleted.object.body.bytes), Buffer.from(object.body.bytes));
    const log = await changesBehind(store, aScope(), object.revision - 1);
    t.deepEqual(
      log.map((change) => [change.kind, change.revision, change.kind === 'put' && change.created]),
      [
        ['put', object.revision, true],
        ['delete', deleted.revision, false],
        ['put', again.revision, true],
      ],
    );
    t.is(log[1]?.previous()?.revision, object.revision);
    t.is(log[2]?.previous(), undefined);
  });

  test('a look-up of a place finds it on every shard of the scope that has it', async (t) => {
    const store = await opened(t);
    for (const shard of ['amber', 'birch', 'cedar']) await mustWrite(store, aPut({ shard, namespace: 'x', name: 'p' }, 'absent'));
    await mustWrite(store, aPut({ shard: 'amber', namespace: 'x', name: 'q' }, 'absent'));
    await store.writer.submit(aDelete({ shard: 'cedar', namespace: 'x', name: 'p' }));
    const found = async (place: Place): Promise<string[]> =>
      (await store.objects.find(aScope({ cluster: 'acme', namespace: 'x', name: 'p', ...place }))).map(({ key }) => key.shard);

    t.deepEqual(await found({}), ['amber', 'birch']);
    t.deepEqual(await found({ shard: 'birch' }), ['birch']);
    t.deepEqual(await found({ shard: 'cedar' }), []);
    t.deepEqual(await found({ namespace: 'y' }), []);
    t.deepEqual(await found({ resource: 'nothing' }), []);
  });

  test('a scope selects by shard, cluster, namespace, name and identity, all identities included', async (t) => {
    const store = await opened(t, { pageRowsMax: 1 });
    await mustWrite(
      store,
      aPut({ shard: 'amber', cluster: 'a1', namespace: 'x', name: 'p', resource: 'things', identity: 'h1' }, 'absent'),
    );
    await mustWrite(
      store,
      aPut({ shard: 'birch', cluster: 'a1', namespace: 'y', name: 'p', resource: 'things', identity: 'h1' }, 'absent'),
    );
    const last = await mustWrite(
      store,
      aPut({ shard: 'birch', cluster: 'b1', namespace: 'x', name: 'q', resource: 'things', identity: 'h2' }, 'absent'),
    );
    await mustWrite(
      store,
      aPut({ shard: 'birch', cluster: 'b1', namespace: 'x', name: 'q', resource: 'others', identity: 'h2' }, 'absent'),
    );
    const things = { resource: 'things' };
    const size = async (place: Place): Promise<number> => (await list(store, aScope({ ...things, ...place }))).length;

    t.is(await size({ identity: 'h1' }), 2);
    t.is(await size({ identity: '*' }), 3);
    t.is(await size({ identity: '*', namespace: 'x' }), 2);
    t.deepEqual(await listTexts(store, aScope({ ...things, identity: '*', name: 'q' })), [`birch/b1/x/q@${last.revision}`]);
    t.is(await size({ identity: 'h1', shard: 'birch' }), 1);
    t.is(await size({ identity: 'h1', shard: 'birch', cluster: 'a1' }), 1);
    t.is(await size({ identity: 'h2', cluster: 'a1' }), 0);
    t.is(await size({ resource: 'unknown' }), 0);
    t.is(await store.objects.count(aScope({ ...things, identity: '*' }), undefined, 100), 3);
    t.is(await store.objects.count(aScope({ ...things, identity: '*' }), undefined, 3), 3);
    t.is(await store.objects.count(aScope({ ...things, identity: '*' }), undefined, 2), undefined, 'it would look at three');
    t.is(await store.objects.count(aScope({ ...things, identity: '*', namespace: 'x' }), undefined, 3), 2);
    t.is(await store.objects.count(aScope({ ...things, identity: '*', namespace: 'x' }), undefined, 2), undefined);
    t.is(await store.objects.count(aScope({ ...things, identity: '*' }), last.object.key, 100), 0);
    t.is(await store.objects.count(aScope({ resource: 'unknown' }), undefined, 100), 0);
  });

  test('a snapshot shows exactly its revision, whatever is written, deleted and recreated while it is read', async (t) => {
    const store = await opened(t, { pageRowsMax: 7 });
    for (let i = 0; i < 60; i++)
      await mustWrite(store, aPut({ shard: i % 2 ? 'amber' : 'birch', cluster: `c${i % 5}`, name: `n${i}` }, 'absent'));
    const expected = await listTexts(store, aScope());
    const inCluster = await listTexts(store, aScope({ cluster: 'c3' }));
    const onShard = await listTexts(store, aScope({ shard: 'amber' }));
    const revision = store.revisions.published;
    let step = 0;
    const between = async (): Promise<void> => {
      for (let i = step; i < 60; i += 9) {
        const place = { shard: i % 2 ? 'amber' : 'birch', cluster: `c${i % 5}`, name: `n${i}` };
        const current = await store.objects.get(aKey(place));
        if (current === undefined) await mustWrite(store, aPut(place, 'absent', { spec: { step } }));
        else if (step % 2) await mustWrite(store, aDelete(place));
        else await mustWrite(store, aPut(place, current.revision, { spec: { step } }));
        await mustWrite(store, aPut({ ...place, name: `extra${step}-${i}` }, 'absent'));
      }
      step += 1;
    };

    t.deepEqual(await listTexts(store, aScope(), { revision, between }), expected);
    t.deepEqual(await listTexts(store, aScope({ cluster: 'c3' }), { revision, between }), inCluster);
    t.deepEqual(await listTexts(store, aScope({ shard: 'amber' }), { revision, between }), onShard);
    t.is(inCluster.length, 12);
    t.deepEqual(await listTexts(store, aScope(), { revision }), expected);
  });

  test('a list can continue after any key, deleted or not, in another snapshot of the same revision, as a continue token does', async (t) => {
    const store = await opened(t, { pageRowsMax: 4 });
    for (let i = 0; i < 30; i++)
      await mustWrite(
        store,
        aPut({ shard: i % 3 ? 'amber' : 'birch', cluster: `c${i % 2}`, namespace: i % 4 ? 'x' : '', name: `n${i}` }, 'absent'),
      );
    const revision = store.revisions.published;

    for (const scope of [aScope(), aScope({ cluster: 'c1' }), aScope({ shard: 'amber' }), aScope({ shard: 'amber', cluster: 'c0' })]) {
      const whole = await list(store, scope, { revision });
      const pieces: string[] = [];
      let after: Key | undefined;
      do {
        const snapshot = store.objects.snapshot(scope, revision);
        const page = await snapshot.page(after);
        snapshot.close();
        pieces.push(...page.objects.map(textOf));
        after = page.next;
        const victim = page.objects.at(-1)?.key;
        if (victim !== undefined) await store.writer.submit({ kind: 'delete', key: victim, expect: 'any' });
      } while (after !== undefined);
      t.deepEqual(pieces, whole.map(textOf));
      for (const [i, object] of whole.entries()) {
        const snapshot = store.objects.snapshot(scope, revision);
        const page = await snapshot.page(object.key);
        snapshot.close();
        t.deepEqual(page.objects.map(textOf), whole.slice(i + 1, i + 1 + page.objects.length).map(textOf));
      }
    }
  });

  test('a page ends at its limit of bytes, and the whole list is still exact', async (t) => {
    const store = await opened(t, { pageBytesMax: 2000 });
    for (let i = 0; i < 20; i++)
      await mustWrite(store, aPut({ name: `n${String(i).padStart(2, '0')}` }, 'absent', { spec: 'x'.repeat(i * 100) }));
    const snapshot = store.objects.snapshot(aScope(), store.revisions.published);

    const first = await snapshot.page(undefined);
    snapshot.close();

    t.true(first.objects.length > 1 && first.objects.length < 20);
    t.is((await list(store, aScope())).length, 20);
  });

  // History

  test('changes are read in rising revision, each once, only of the scope, and only within both ends', async (t) => {
    const store = await opened(t);
    const from = store.revisions.published;
    const puts = Array.from({ length: 700 }, (_, i) =>
      aPut({ shard: i % 2 ? 'amber' : 'birch', name: `n${i}` }, 'absent', { spec: 'x'.repeat(1000) }),
    );
    await Promise.all([...puts, aPut({ name: 'last', resource: 'others' }, 'absent')].map((put) => mustWrite(store, put)));
    const all = await changesBehind(store, aScope(), from);
    const revisions = all.map(({ revision }) => revision);

    t.is(all.length, 700);
    t.deepEqual(
      revisions,
      revisions.toSorted((a, b) => a - b),
    );
    t.is((await changesBehind(store, aScope({ shard: 'amber' }), from)).length, 350);
    t.is((await changesBehind(store, aScope({ name: 'n17' }), from)).length, 1);
    t.is((await changesBehind(store, aScope({ resource: 'unknown' }), from)).length, 0);
    const [after, upTo] = [revisions[99]!, revisions[599]!];
    t.deepEqual(
      (await changesBehind(store, aScope(), after, upTo)).map(({ revision }) => revision),
      revisions.slice(100, 600),
    );
    t.deepEqual(await changesBehind(store, aScope(), upTo, upTo), []);
  });

  test('touched names every key that changed in the range at least once, deleted keys included', async (t) => {
    const store = await opened(t);
    const from = store.revisions.published;
    const quiet = await mustWrite(store, aPut({ name: 'quiet' }, 'absent'));
    const busy = await mustWrite(store, aPut({ name: 'busy' }, 'absent'));
    await mustWrite(store, aPut({ name: 'busy' }, busy.revision));
    await mustWrite(store, aPut({ name: 'gone' }, 'absent'));
    await mustWrite(store, aDelete({ name: 'gone' }));

    const names = (await touchedBehind(store, aScope(), quiet.revision)).map((text) => text.split('/').at(-1));

    t.deepEqual(names, ['busy', 'gone']);
    t.true(store.history.remembers(from));
  });

  test('the first touch of a key shows its state at the end of the range, whatever happens later, over many pages', async (t) => {
    const store = await opened(t);
    const from = store.revisions.published;
    const first = await Promise.all(Array.from({ length: 300 }, (_, i) => mustWrite(store, aPut({ name: `n${i}` }, 'absent'))));
    await Promise.all(first.map(({ revision }, i) => mustWrite(store, aPut({ name: `n${i}` }, revision))));
    const dropped = await mustWrite(store, aDelete({ name: 'n7' }));
    await mustWrite(store, aDelete({ name: 'n8' }));
    const again = await mustWrite(store, aPut({ name: 'n8' }, 'absent'));
    await mustWrite(store, aPut({ name: 'n7' }, 'absent'));
    await mustWrite(store, aDelete({ name: 'n8' }));

    const stood = new Map<string, number | undefined>();
    for await (const touched of store.history.touched(aScope(), { after: from, upTo: again.revision }))
      for (const { key, kind, object } of touched)
        if (!stood.has(key.name)) stood.set(key.name, kind === 'delete' ? undefined : object()?.revision);

    const standing = [...stood].flatMap(([name, revision]) => (revision === undefined ? [] : `${name}@${revision}`));
    const expected = (await list(store, aScope(), { revision: again.revision })).map(({ key, revision }) => `${key.name}@${revision}`);
    t.is(stood.size, 300);
    t.deepEqual(standing.toSorted(), expected.toSorted());
    t.true(stood.has('n7') && stood.get('n7') === undefined && dropped.revision < again.revision);
  });

  test('when a namesake on another shard is deleted, the survivor is written again right after the delete', async (t) => {
    const store = await opened(t);
    await mustWrite(store, aPut({ shard: 'amber' }, 'absent', { spec: { winner: false } }));
    const winner = await mustWrite(store, aPut({ shard: 'birch' }, 'absent', { spec: { winner: true } }));
    const heard: string[] = [];
    store.commits.subscribe(({ changes }) => heard.push(...changes.map(changeText)));

    const deleted = await mustWrite(store, aDelete({ shard: 'amber' }));

    const again = await store.objects.get(aKey({ shard: 'birch' }));
    t.true(again !== undefined && again.revision > deleted.revision);
    t.deepEqual(Buffer.from(again!.body.bytes), Buffer.from(winner.object.body.bytes));
    const log = await changesBehind(store, aScope(), winner.revision);
    t.deepEqual(log.map(changeText), heard);
    t.deepEqual(
      log.map(({ kind, key }) => `${kind} ${key.shard}`),
      ['delete amber', 'put birch'],
    );
    t.like(log[1], { created: false, revision: again!.revision });
    t.is((await mustWrite(store, aDelete({ shard: 'birch' }, again!.revision))).object.revision, again!.revision);
  });

  // Paths

  test('a canonical path leads to its logical cluster, moves with the newest annotation, and goes with the last object', async (t) => {
    const store = await opened(t);
    const path = parseCanonicalPath('root:acme')!;
    const moved = parseCanonicalPath('root:new')!;
    const heard: string[][] = [];
    store.commits.subscribe(({ movedPaths }) => heard.push([...movedPaths]));

    await mustWrite(store, aPut({ name: 'one' }, 'absent', { path: 'root:acme' }));
    await mustWrite(store, aPut({ name: 'two' }, 'absent'));
    t.deepEqual(await store.paths.clustersAt(path), ['acme' as never]);
    await mustWrite(store, aPut({ name: 'three' }, 'absent', { path: 'root:new' }));
    t.deepEqual(await store.paths.clustersAt(path), []);
    t.deepEqual(await store.paths.clustersAt(moved), ['acme' as never]);
    for (const name of ['one', 'two', 'three']) await mustWrite(store, aDelete({ name }));
    t.deepEqual(await store.paths.clustersAt(moved), []);
    t.deepEqual(heard, [['root:acme'], [], ['root:acme', 'root:new'], [], [], ['root:new']]);
  });

  test('a path stays while another shard has objects there, and names every logical cluster that claims it', async (t) => {
    const store = await opened(t);
    const path = parseCanonicalPath('root:acme')!;
    for (const shard of ['amber', 'birch']) await mustWrite(store, aPut({ shard, name: shard }, 'absent', { path: 'root:acme' }));
    await mustWrite(store, aPut({ cluster: 'bold' }, 'absent', { path: 'root:acme' }));

    await mustWrite(store, aDelete({ shard: 'amber', name: 'amber' }));

    t.deepEqual(await store.paths.clustersAt(path), ['acme' as never, 'bold' as never]);
    await mustWrite(store, aDelete({ shard: 'birch', name: 'birch' }));
    t.deepEqual(await store.paths.clustersAt(path), ['bold' as never]);
  });

  test('an object rewritten because its namesake is gone moves no path, also after a restart; a writer that repeats it does', async (t) => {
    const engine = await open(t, {});
    const { store } = engine;
    const pathsOf = async (of: Store): Promise<readonly unknown[]> => of.paths.pathsOf([aKey({ shard: 'birch' })]);
    const moves: string[] = [];
    const older = await mustWrite(store, aPut({ shard: 'birch' }, 'absent', { path: 'root:old' }));
    await mustWrite(store, aPut({ shard: 'birch', name: 'two' }, 'absent', { path: 'root:new' }));
    await mustWrite(store, aPut({}, 'absent'));
    store.commits.subscribe(({ movedPaths }) => moves.push(...movedPaths));

    await mustWrite(store, aDelete({}));

    const again = await store.objects.get(aKey({ shard: 'birch' }));
    t.true(again !== undefined && again.revision > older.revision, 'it was written again');
    t.deepEqual([await pathsOf(store), moves], [['root:new'], []]);
    t.deepEqual(await pathsOf(await engine.restart()), ['root:new']);
    await mustWrite(engine.store, aPut({ shard: 'birch' }, again?.revision ?? 0, { path: 'root:old', spec: { n: 1 } }));
    t.deepEqual(await pathsOf(engine.store), ['root:old']);
    t.deepEqual(await pathsOf(await engine.restart()), ['root:old']);
  });

  test('a logical cluster without an owner has the path of its path entry, whatever path its objects name', async (t) => {
    const store = await opened(t);
    const [home, other] = [parseCanonicalPath('home:acme')!, parseCanonicalPath('home:other')!];
    const entry = (expect: 'absent' | number, isParentless: boolean): Mutation => {
      const key = aKey({ group: pathGroup, resource: 'logicalclusters', name: 'cluster' });
      const written: PathEntry = { kind: 'cluster', path: home, isParentless, isMigrating: false };
      return { kind: 'put', key, body: pathEntryBody(formatPathEntry(written)), path: pathOfEntry(written), expect };
    };
    await mustWrite(store, aPut({ cluster: 'bold' }, 'absent', { path: home }));
    t.deepEqual(await store.paths.ownersOf(home), [], 'an object names a path, and owns none');

    const { revision } = await mustWrite(store, entry('absent', true));
    await mustWrite(store, aPut({ name: 'one' }, 'absent', { path: other }));

    t.deepEqual(await store.paths.ownersOf(home), ['acme' as never]);
    t.deepEqual(await store.paths.pathsOf([aKey()]), [home], 'its own objects name another in vain');
    t.deepEqual(await store.paths.ownersOf(other), []);
    const workspace: PathEntry = { kind: 'workspace', target: { cluster: clusterName('bold'), shard: undefined }, isUnavailable: false };
    await mustWrite(store, {
      kind: 'put',
      key: aKey({ group: pathGroup, resource: 'workspaces', name: 'team' }),
      body: pathEntryBody(formatPathEntry(workspace)),
      path: undefined,
      expect: 'absent',
    });
    t.deepEqual(await store.paths.ownersOf(home), ['acme' as never], 'an entry of a Workspace in it says nothing of its path');

    const owned = await mustWrite(store, entry(revision, false));
    const { shard: _, ...place } = aKey({ group: pathGroup, resource: 'logicalclusters', name: 'cluster' });
    t.deepEqual(await store.objects.shardsWith(place), ['amber' as never]);
    t.deepEqual(await store.objects.shardsWith({ ...place, name: 'other' }), []);
    t.deepEqual(await store.paths.ownersOf(home), [], 'it has an owner now');
    t.deepEqual(await store.paths.pathsOf([aKey()]), [other], 'what its objects have named meanwhile counts again');
    await mustWrite(store, entry(owned.revision, true));
    t.deepEqual(await store.paths.ownersOf(home), ['acme' as never]);
    await mustWrite(store, aDelete({ group: pathGroup, resource: 'workspaces', name: 'team' }));
    await mustWrite(store, aDelete({ group: pathGroup, resource: 'logicalclusters', name: 'cluster' }));
    t.deepEqual(await store.paths.ownersOf(home), []);
    t.deepEqual(await store.paths.pathsOf([aKey()]), [other]);
    t.deepEqual(await store.paths.clustersAt(home), ['bold' as never]);
  });

  // Revisions

  test('a resourceVersion is a plain decimal that rises with the revision and leads back to it', async (t) => {
    const { store, traits } = await open(t, {});
    const texts = [store.revisions.format(store.revisions.published)];
    for (let i = 0; i < 5; i++) texts.push((await mustWrite(store, aPut({ name: `n${i}` }, 'absent'))).resourceVersion);

    for (const [i, text] of texts.entries()) {
      t.regex(text, /^[1-9]\d*$/);
      t.true(BigInt(text) < 2n ** 64n);
      if (i > 0) t.true(BigInt(text) > BigInt(texts[i - 1]!));
      const located = store.revisions.locate(text);
      t.is(located.kind, 'ours');
      t.is(located.kind === 'ours' && store.revisions.format(located.revision), text);
    }
    if (traits.ordersWrites) t.deepEqual(store.revisions.locate(String(BigInt(texts.at(-1)!) + 1n)), { kind: 'above' });
    if (traits.ordersWrites) t.deepEqual(store.revisions.locate('1'), { kind: 'below' }, 'a text of another store');
    t.deepEqual(store.revisions.locate('9'.repeat(19)), { kind: 'above' });
    t.deepEqual(store.revisions.locate('9'.repeat(40)), { kind: 'above' });
  });

  // Restart

  test('objects, history, versions and paths survive a restart, and revisions go on', async (t) => {
    const engine = await open(t, {});
    const from = engine.store.revisions.published;
    const fifth: Written[] = [];
    for (let i = 0; i < 20; i++)
      fifth.push(await mustWrite(engine.store, aPut({ name: `n${i}` }, 'absent', i === 7 ? { path: 'root:acme' } : {})));
    const { revision: published } = await mustWrite(engine.store, aDelete({ name: 'n3' }));
    const revisions = [fifth[4]!.revision, published];
    const texts = revisions.map((revision) => engine.store.revisions.format(revision));
    const log = (await changesBehind(engine.store, aScope(), from)).map(changeText);
    const listed = await listTexts(engine.store, aScope());

    const store = await engine.restart();

    if (engine.traits.ordersWrites) t.is(store.revisions.published, published);
    t.deepEqual(
      texts.map((text) => store.revisions.locate(text)),
      revisions.map((revision) => ({ kind: 'ours', revision })),
    );
    t.deepEqual((await changesBehind(store, aScope(), from)).map(changeText), log);
    t.deepEqual(await listTexts(store, aScope()), listed);
    t.deepEqual(await store.paths.clustersAt(parseCanonicalPath('root:acme')!), ['acme' as never]);
    const next = await mustWrite(store, aPut({ name: 'next' }, 'absent'));
    t.true(next.revision > published);
    t.true(BigInt(next.resourceVersion) > BigInt(texts[1]!));
  });

  // Compaction

  test('compaction keeps every live object and every tombstone, and readers below it are refused', async (t) => {
    const engine = await open(t, { changesMax: 10 });
    const { store } = engine;
    let revision = (await mustWrite(store, aPut({ name: 'busy' }, 'absent'))).revision;
    const gone = await mustWrite(store, aPut({ name: 'gone' }, 'absent'));
    const quiet = await mustWrite(store, aPut({ name: 'quiet' }, 'absent'));
    await mustWrite(store, aDelete({ name: 'gone' }));
    const revisions: number[] = [];
    for (let i = 0; i < 500; i++) {
      revision = (await mustWrite(store, aPut({ name: 'busy' }, revision, { spec: { i } }))).revision;
      revisions.push(revision);
    }

    await engine.compact();

    t.is(store.revisions.compacted, revisions.at(-11)!);
    t.is((await list(store, aScope())).length, 2);
    t.is((await list(store, aScope(), { revision: store.revisions.compacted })).length, 2);
    t.is((await changesBehind(store, aScope(), store.revisions.compacted)).length, 10);
    await t.throwsAsync(changesBehind(store, aScope(), store.revisions.compacted - 1), { instanceOf: Refused });
    t.throws(() => store.objects.snapshot(aScope(), store.revisions.compacted - 1), { instanceOf: Refused });
    if (!engine.traits.keepsTombstones) return;
    t.true(store.history.remembers(gone.revision));
    t.deepEqual(
      (await touchedBehind(store, aScope(), quiet.revision)).map((text) => text.split('/').at(-1)),
      ['busy', 'gone'],
    );
    const again = await engine.restart();
    t.is(again.revisions.compacted, store.revisions.compacted);
  });

  test('at the compacted revision a delete carries its content; a read below that revision is refused, never incomplete', async (t) => {
    for (const offset of [-1, 0, 1]) {
      const engine = await open(t, { changesMax: 20 });
      const { store } = engine;
      const { revision: put } = await mustWrite(store, aPut({ name: 'edge' }, 'absent', { spec: 'last words' }));
      const { revision } = await mustWrite(store, aDelete({ name: 'edge' }));
      // The compacted revision becomes that of the change before the delete, of the delete, or of
      // the change after it.
      const behind: number[] = [];
      while (behind.length < offset + 20) behind.push((await mustWrite(store, aPut({ name: `n${behind.length}` }, 'absent'))).revision);
      await engine.compact();
      t.is(store.revisions.compacted, [put, revision, behind[0]!][offset + 1]!);

      if (offset < 0) {
        const [change] = await changesBehind(store, aScope(), revision - 1);
        t.like(change, { kind: 'delete', revision });
        t.is(change?.previous()?.revision, put);
        t.true((await listTexts(store, aScope(), { revision: revision - 1 })).includes(`amber/acme/edge@${put}`));
      } else {
        await t.throwsAsync(changesBehind(store, aScope(), revision - 1), { instanceOf: Refused });
        t.throws(() => store.objects.snapshot(aScope(), revision - 1), { instanceOf: Refused });
        t.is((await changesBehind(store, aScope(), store.revisions.compacted)).filter(({ key }) => key.name === 'edge').length, 0);
        if (engine.traits.keepsTombstones)
          t.true((await touchedBehind(store, aScope(), revision - 1)).some((text) => text.endsWith('/edge')));
      }
    }
  });

  test('a snapshot in progress holds compaction back while the log is near its bounds, and a refused list does not', async (t) => {
    const engine = await open(t, { changesMax: 100, pageRowsMax: 3 });
    const { store } = engine;
    const revisions: number[] = [];
    for (let i = 0; i < 20; i++) revisions.push((await mustWrite(store, aPut({ name: `n${i}` }, 'absent'))).revision);
    const held = store.objects.snapshot(aScope(), revisions[11]!);
    const page = await held.page(undefined);
    for (let i = 0; i < 20; i++) await store.writer.submit(aDelete({ name: `n${i}` }));
    for (let i = 0; i < 76; i++) await mustWrite(store, aPut({ name: `later${i}` }, 'absent'));

    await engine.compact();
    t.is(store.revisions.compacted, revisions[11]!);
    const read = page.objects.map(textOf);
    for (let next = page.next; next !== undefined;) {
      const more = await held.page(next);
      read.push(...more.objects.map(textOf));
      next = more.next;
    }
    t.is(new Set(read).size, 12);
    t.is(read.length, 12);
    t.throws(() => store.objects.snapshot(aScope(), revisions[2]!), { instanceOf: Refused });
    held.close();
    await engine.compact();

    t.is((await changesBehind(store, aScope(), store.revisions.compacted)).length, 100, 'nothing holds it back any more');
  });

  test('a snapshot in progress is given up when it would carry the log a twentieth over its bounds', async (t) => {
    const engine = await open(t, { changesMax: 100, pageRowsMax: 3 });
    const { store } = engine;
    const revisions: number[] = [];
    for (let i = 0; i < 20; i++) revisions.push((await mustWrite(store, aPut({ name: `n${i}` }, 'absent'))).revision);
    const held = store.objects.snapshot(aScope(), revisions[11]!);
    const { next } = await held.page(undefined);
    for (let i = 0; i < 97; i++) await mustWrite(store, aPut({ name: `later${i}` }, 'absent'));

    await engine.compact();

    t.is(store.revisions.compacted, revisions[16]!);
    await t.throwsAsync(held.page(next), { instanceOf: Refused });
    held.close();
  });

  test('tombstones are dropped by count, and the store says how far back it remembers', async (t) => {
    const engine = await open(t, { changesMax: 0, tombstonesMax: 3 });
    const { store } = engine;
    if (!engine.traits.keepsTombstones) {
      t.pass();
      return;
    }
    const deletes: number[] = [];
    for (let i = 0; i < 8; i++) {
      await mustWrite(store, aPut({ name: `n${i}` }, 'absent'));
      deletes.push((await mustWrite(store, aDelete({ name: `n${i}` }))).revision);
    }
    await mustWrite(store, aPut({ name: 'end' }, 'absent'));

    await engine.compact();

    t.is(store.revisions.compacted, store.revisions.published);
    t.false(store.history.remembers(deletes[3]!));
    t.true(store.history.remembers(deletes[4]!));
    const names = (await touchedBehind(store, aScope(), deletes[4]!)).map((text) => text.split('/').at(-1));
    t.deepEqual(names, ['end', 'n5', 'n6', 'n7']);
  });

  test('a request for keys that the store no longer remembers is refused', async (t) => {
    const engine = await open(t, { changesMax: 0, tombstonesMax: 1 });
    const from = engine.store.revisions.published;
    for (let i = 0; i < 3; i++) {
      await mustWrite(engine.store, aPut({ name: `n${i}` }, 'absent'));
      await mustWrite(engine.store, aDelete({ name: `n${i}` }));
    }
    await engine.compact();

    t.false(engine.store.history.remembers(from + 1));
    await t.throwsAsync(touchedBehind(engine.store, aScope(), from + 1), { instanceOf: Refused });
  });

  test('writers go on while the store compacts, and all their objects are whole', async (t) => {
    const engine = await open(t, { changesMax: 50 });
    const { store } = engine;
    const outcomes: Promise<Outcome>[] = [];
    for (let i = 0; i < 1500; i++) outcomes.push(store.writer.submit(aPut({ name: `n${i}` }, 'absent')));
    await outcomes[600];

    await engine.compact();
    await Promise.all(outcomes);
    await engine.compact();

    t.is((await list(store, aScope())).length, 1500);
    t.is((await changesBehind(store, aScope(), store.revisions.compacted)).length, 50);
  });
}
