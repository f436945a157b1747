/**
 * What every engine behind the ports `Pushes` and `StoreIdentity` must do, beside
 * store-contract.ts. The suite gets an engine as a factory and knows nothing else of it.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import type { Commit } from '../../src/domain/change.js';
import type { PushLane, Store } from '../../src/domain/store-port.js';
import type { Push, PushOutcome, SliceState } from '../../src/domain/push.js';
import type { Body } from '../../src/domain/object.js';
import { formatSlice } from '../../src/domain/slice.js';
import { aDelete, aKey, aPut, aScope } from '../support/objects.js';
import {
  aBegin,
  aClaim,
  aClear,
  aClusterBegin,
  aClusterEnd,
  anInvalidation,
  aDrop,
  aKeep,
  anEnd,
  aProcess,
  aRetract,
  aSlice,
  anUpsert,
  aFullSync,
  firstTerm,
  mustPush,
  outcomeTexts,
} from '../support/pushes.js';
import { changesBehind, changeText, list, listTexts, mustWrite } from './read-all.js';
import type { Engine, EngineBounds } from './store-contract.js';

/** More than any engine removes in one commit. */
const manyObjects = 2_000;

/** The state of a shard that a pusher has claimed. */
const localState = { via: 'local', process: '', removed: false, origin: 'here', plain: false } as const;

const manyUpserts = (): readonly Push[] => Array.from({ length: manyObjects }, (_, i) => anUpsert({ name: `n${i}` }));

const namesOf = async (store: Store): Promise<string[]> => (await list(store, aScope())).map(({ key }) => key.name);

async function sliceOf(
  store: Store,
  place: Parameters<typeof aSlice>[0] = {},
): Promise<Pick<SliceState, 'objects' | 'bytes' | 'syncedTerm' | 'everSynced'> | undefined> {
  const found = [...store.state.slices].find(({ slice }) => formatSlice(slice) === formatSlice(aSlice(place)));
  if (found === undefined) return undefined;
  const { objects, bytes, syncedTerm, everSynced } = found;
  return { objects, bytes, syncedTerm, everSynced };
}

/** Runs `then` as soon as the next commit is published. */
function afterNextCommit<T>(store: Store, then: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const subscription = store.commits.subscribe(() => {
      subscription.cancel();
      then().then(resolve, reject);
    });
  });
}

/** The counts that the slices should have, computed from the objects. */
async function recount(store: Store, resources: readonly string[]): Promise<readonly string[]> {
  const objects = (await Promise.all(resources.map((resource) => list(store, aScope({ resource }))))).flat();
  const counts = new Map<string, { objects: number; bytes: number }>();
  for (const { key, body } of objects) {
    const count = counts.get(formatSlice(key)) ?? { objects: 0, bytes: 0 };
    counts.set(formatSlice(key), { objects: count.objects + 1, bytes: count.bytes + body.bytes.length });
  }
  return [...counts].map(([slice, count]) => `${slice} ${count.objects} ${count.bytes}`).toSorted();
}

/** The same body in another version. */
function inVersion({ bytes, version }: Body, other: string): Pick<Body, 'bytes' | 'version'> {
  const text = Buffer.from(bytes).toString();
  if (version.length !== other.length || !text.includes(`/${version}"`)) throw new Error(`the body is not of ${version}`);
  return { bytes: Buffer.from(text.replace(`/${version}"`, `/${other}"`)), version: other };
}

async function counted(store: Store): Promise<readonly string[]> {
  return [...store.state.slices].map(({ slice, objects, bytes }) => `${formatSlice(slice)} ${objects} ${bytes}`).toSorted();
}

export function registerPushContract(open: (t: ExecutionContext, bounds: EngineBounds) => Promise<Engine>): void {
  const opened = async (t: ExecutionContext): Promise<Store> => (await open(t, {})).store;

  const claimed = async (t: ExecutionContext): Promise<{ engine: Engine; store: Store; lane: PushLane }> => {
    const engine = await open(t, {});
    const lane = engine.store.writer.lane();
    await mustPush(lane, [aClaim()]);
    return { engine, store: engine.store, lane };
  };

  // Claims and the fence

  test('a claim counts if it is the highest or a repeat; the outcome of a lower claim names the holder', async (t) => {
    const store = await opened(t);
    store.commits.subscribe(() => t.fail('a claim is no change'));

    const outcomes = await store.writer
      .lane()
      .push([aClaim('amber', 5), aClaim('amber', 5), aClaim('amber', 7), aClaim('amber', 6), aClaim('birch', 1)]);

    t.deepEqual(outcomeTexts(outcomes), ['acquired', 'acquired', 'acquired', 'fenced by 7', 'acquired']);
    t.deepEqual(
      [...store.state.shards],
      [
        { shard: aKey().shard, ...localState, term: 7, process: aProcess(7), origin: store.cacheId },
        { shard: aKey({ shard: 'birch' }).shard, ...localState, term: 1, process: aProcess(1), origin: store.cacheId },
      ],
    );
  });

  test('pushes from anyone but the holder are fenced, in queue order, and change nothing', async (t) => {
    const { store, lane } = await claimed(t);

    const outcomes = await lane.push([
      anUpsert({ name: 'a' }),
      aClaim('amber', 2_000),
      anUpsert({ name: 'b' }),
      aBegin(),
      aKeep({ name: 'a' }),
      aRetract({ name: 'a' }),
      anEnd(),
      anInvalidation(),
      anUpsert({ name: 'c' }, {}, 2_000),
      anUpsert({ shard: 'birch' }),
    ]);

    t.deepEqual(outcomeTexts(outcomes), [
      'written',
      'acquired',
      ...Array.from({ length: 6 }, () => 'fenced by 2000'),
      'written',
      'fenced by 0',
    ]);
    t.deepEqual(await namesOf(store), ['a', 'c']);
  });

  // Objects

  test('an upsert writes its object unless one with the same bytes and version is there', async (t) => {
    const { store, lane } = await claimed(t);
    const commits: Commit[] = [];
    store.commits.subscribe((commit) => commits.push(commit));
    const state = anUpsert({}, { spec: { n: 1 } });
    if (state.kind !== 'upsert') throw new Error('the push is no upsert');
    const again = { ...state, body: { ...state.body, bytes: Uint8Array.from(state.body.bytes) } };
    const asLong = anUpsert({}, { spec: { n: 2 } });
    const longer = anUpsert({}, { spec: { n: 22 } });
    if (longer.kind !== 'upsert') throw new Error('the push is no upsert');
    const otherVersion = { ...longer, body: { ...longer.body, ...inVersion(longer.body, 'v1alpha9') } };

    const outcomes: string[] = [];
    for (const push of [state, again, asLong, longer, otherVersion, otherVersion]) outcomes.push(...(await mustPush(lane, [push])));

    t.deepEqual(outcomes, ['written', 'unchanged', 'written', 'written', 'written', 'unchanged']);
    t.is(commits.length, 4, 'an equal object is no event');
    const from = commits[0]!.revision - 1;
    t.deepEqual((await changesBehind(store, aScope(), from)).map(changeText), commits.flatMap(({ changes }) => changes).map(changeText));
    const { bytes, ...rest } = (await store.objects.get(aKey()))!.body;
    t.deepEqual([Buffer.from(bytes), rest.version], [Buffer.from(otherVersion.body.bytes), 'v1alpha9']);
    t.deepEqual(rest.marks, longer.body.marks);
  });

  test('an upsert replaces an object written over HTTP, and a PUT replaces a pushed object', async (t) => {
    const { store, lane } = await claimed(t);
    const written = await mustWrite(store, aPut({}, 'absent', { spec: 1 }));

    const [synced] = await lane.push([anUpsert({}, { spec: 2 })]);
    t.is(synced?.kind, 'written');
    t.deepEqual(await store.writer.submit(aPut({}, written.revision, { spec: 3 })), { kind: 'refused', why: 'changed' });
    const current = await store.objects.get(aKey());
    const { revision } = await mustWrite(store, aPut({}, current!.revision, { spec: 3 }));

    t.deepEqual(await listTexts(store, aScope()), [`amber/acme/one@${revision}`]);
  });

  test('a slice that a plain writer changes no longer counts as synced until it is synced again; other slices still do', async (t) => {
    const { store, lane } = await claimed(t);
    const schemas = { resource: 'apiresourceschemas' };
    await mustPush(lane, [...aFullSync({}, [anUpsert({ name: 'a' })]), ...aFullSync(schemas, [])]);
    const syncedTerms = async () => [(await sliceOf(store))?.syncedTerm, (await sliceOf(store, schemas))?.syncedTerm];
    t.deepEqual(await syncedTerms(), [firstTerm, firstTerm]);

    t.is((await store.writer.submit(aDelete({ name: 'none' }))).kind, 'refused');
    t.deepEqual(await syncedTerms(), [firstTerm, firstTerm]);
    await mustWrite(store, { ...aPut({ name: 'b' }, 'absent'), bySource: true });
    t.deepEqual(await syncedTerms(), [firstTerm, firstTerm], 'what the shard itself writes counts as pushed');
    await mustWrite(store, aDelete({ name: 'a' }));
    t.deepEqual(await syncedTerms(), [0, firstTerm]);
    await mustPush(lane, aFullSync({}, [anUpsert({ name: 'a' })]));
    t.deepEqual(await syncedTerms(), [firstTerm, firstTerm]);
    await mustPush(lane, [aBegin(), anUpsert({ name: 'a' })]);
    await mustWrite(store, aDelete({ name: 'a' }));
    t.deepEqual(outcomeTexts(await lane.push([anEnd()])), ['unbegun'], 'a sync under way does not count either');
    t.deepEqual(await syncedTerms(), [0, firstTerm]);
  });

  test('a retract deletes an existing object and does nothing otherwise; a keep never writes', async (t) => {
    const { store, lane } = await claimed(t);

    const from = store.revisions.published;
    const texts = await mustPush(lane, [aKeep(), aRetract(), anUpsert(), aKeep(), aRetract(), aRetract()]);

    t.deepEqual(texts, ['unchanged', 'unchanged', 'written', 'unchanged', 'written', 'unchanged']);
    t.deepEqual(
      (await changesBehind(store, aScope(), from)).map(({ kind }) => kind),
      ['put', 'delete'],
    );
    t.is(await store.objects.get(aKey()), undefined);
  });

  test('the path index follows synced objects, and a retracted last object takes its path along', async (t) => {
    const { store, lane } = await claimed(t);
    const commits: Commit[] = [];
    store.commits.subscribe((commit) => commits.push(commit));
    const clusters = (path: string) => store.paths.clustersAt(parseCanonicalPath(path)!);

    await mustPush(lane, [anUpsert({}, { path: 'root:org' })]);
    t.deepEqual(await clusters('root:org'), [aKey().cluster]);
    await mustPush(lane, [anUpsert({}, { path: 'root:moved' })]);
    t.deepEqual([await clusters('root:org'), await clusters('root:moved')], [[], [aKey().cluster]]);
    await mustPush(lane, [aRetract()]);

    t.deepEqual(await clusters('root:moved'), []);
    t.deepEqual(
      commits.map(({ movedPaths }) => movedPaths),
      [['root:org'], ['root:org', 'root:moved'], ['root:moved']],
    );
  });

  test('when an object is retracted, its namesake on another shard is written again right after the delete', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [aClaim('birch'), anUpsert({ shard: 'birch' }), anUpsert()]);
    const from = store.revisions.published;
    const heard: string[] = [];
    store.commits.subscribe(({ changes }) => heard.push(...changes.map(changeText)));

    await mustPush(lane, [aRetract()]);
    await mustPush(lane, [anUpsert({ name: 'behind' })]);

    const log = await changesBehind(store, aScope(), from);
    t.deepEqual(
      log.map(({ kind, key }) => `${kind} ${key.shard} ${key.name}`),
      ['delete amber one', 'put birch one', 'put amber behind'],
    );
    t.deepEqual(heard, log.map(changeText));
  });

  // Syncs

  test('a sync removes the objects that it did not name, only at its end, and counts them; an equal object gets no revision', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [
      anUpsert({ name: 'changed' }),
      anUpsert({ name: 'gone' }),
      anUpsert({ name: 'kept' }),
      anUpsert({ name: 'same' }),
    ]);
    const { published } = store.revisions;
    const commits: Commit[] = [];
    store.commits.subscribe((commit) => commits.push(commit));

    const syncing = [aBegin(), anUpsert({ name: 'same' }), anUpsert({ name: 'changed' }, { spec: 2 }), aKeep({ name: 'kept' })];
    t.deepEqual(await mustPush(lane, syncing), ['unchanged', 'unchanged', 'written', 'unchanged']);
    t.deepEqual(await namesOf(store), ['changed', 'gone', 'kept', 'same'], 'nothing goes before the end');
    t.deepEqual(await mustPush(lane, [anUpsert({ name: 'new' }), anEnd()]), ['written', 'swept 1']);

    t.deepEqual(await namesOf(store), ['changed', 'kept', 'new', 'same']);
    const log = (await changesBehind(store, aScope(), published)).map((change) => `${change.kind} ${change.key.name}`);
    t.deepEqual(log, ['put changed', 'put new', 'delete gone']);
    const swept = commits.flatMap(({ swept: revisions }) => [...revisions]);
    const deleted = commits.at(-1)?.changes.at(-1);
    t.deepEqual(swept, [deleted!.revision]);
    t.is(deleted?.previous()?.key.name, 'gone', 'the change carries what the object held');
  });

  test('an object that a retract deleted is not among the swept', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [anUpsert({ name: 'a' }), anUpsert({ name: 'b' })]);
    const swept: number[] = [];
    store.commits.subscribe((commit) => swept.push(...commit.swept));

    await mustPush(lane, [aRetract({ name: 'a' })]);
    await mustWrite(store, aDelete({ name: 'b' }));

    t.deepEqual(swept, []);
  });

  test('a sync touches its own slice alone', async (t) => {
    const { store, lane } = await claimed(t);
    const others = [{ shard: 'birch' }, { resource: 'others' }, { identity: 'hash' }];
    await mustPush(lane, [aClaim('birch'), anUpsert({ name: 'gone' }), ...others.map((place) => anUpsert(place))]);

    t.deepEqual(await mustPush(lane, aFullSync({}, [])), ['unchanged', 'swept 1']);

    t.is(await store.objects.get(aKey({ name: 'gone' })), undefined);
    for (const place of others) t.truthy(await store.objects.get(aKey(place)), JSON.stringify(place));
  });

  test('a plain write by the shard itself survives the end of a sync that was under way', async (t) => {
    const { store, lane } = await claimed(t);
    const old = await mustWrite(store, aPut({ name: 'touched' }, 'absent'));

    await mustPush(lane, [aBegin()]);
    await mustWrite(store, { ...aPut({ name: 'touched' }, old.revision, { spec: 2 }), bySource: true });
    await mustWrite(store, { ...aPut({ name: 'created' }, 'absent'), bySource: true });
    t.deepEqual(await mustPush(lane, [anEnd()]), ['swept 0']);

    t.deepEqual(await namesOf(store), ['created', 'touched']);
  });

  test('an object rewritten only because its namesake was deleted still counts as unmarked, until a push names it', async (t) => {
    const { store, lane } = await claimed(t);
    const other = store.writer.lane();
    const names = ['confirmed before', 'confirmed behind', 'unspoken'].map((name) => name.replace(' ', '-'));
    await mustPush(other, [aClaim('birch'), ...names.map((name) => anUpsert({ shard: 'birch', name }))]);
    await mustPush(lane, [...names.map((name) => anUpsert({ name })), aBegin(), aKeep({ name: names[0]! })]);

    await mustPush(
      other,
      names.map((name) => aRetract({ shard: 'birch', name })),
    );
    t.deepEqual(await mustPush(lane, [aKeep({ name: names[1]! }), anEnd()]), ['unchanged', 'swept 1']);

    t.deepEqual(await namesOf(store), names.slice(0, 2));
  });

  test('a newer begin starts over: earlier marks do not count', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [anUpsert({ name: 'a' }), anUpsert({ name: 'b' })]);

    const texts = await mustPush(lane, [aBegin(), aKeep({ name: 'a' }), aBegin(), aKeep({ name: 'b' }), anEnd()]);

    t.is(texts.at(-1), 'swept 1');
    t.deepEqual(await namesOf(store), ['b']);
  });

  test('a sync of one logical cluster removes the unnamed objects there, and leaves the rest of the slice as it is', async (t) => {
    const { store, lane } = await claimed(t);
    const [acme, bold] = [{ cluster: 'acme' }, { cluster: 'bold' }];
    await mustPush(lane, aFullSync({}, [anUpsert({ ...acme, name: 'gone' }), anUpsert({ ...acme, name: 'kept' }), anUpsert(bold)]));
    const before = await sliceOf(store);

    const syncing = [aClusterBegin(acme), aKeep({ ...acme, name: 'kept' }), anUpsert({ ...acme, name: 'new' })];
    t.deepEqual(await mustPush(lane, [...syncing, aClusterEnd(acme)]), ['unchanged', 'unchanged', 'written', 'swept 1']);

    t.deepEqual(await namesOf(store), ['kept', 'new', 'one']);
    const after = await sliceOf(store);
    t.deepEqual([after?.syncedTerm, after?.everSynced], [before?.syncedTerm, true]);
    t.not(before?.syncedTerm, 0);
  });

  test('within a full sync, each logical cluster under way is swept at its own end, and all others at the end of the sync', async (t) => {
    const { store, lane } = await claimed(t);
    const [acme, bold, cool] = [{ cluster: 'acme' }, { cluster: 'bold' }, { cluster: 'cool' }];
    await mustPush(
      lane,
      aFullSync(
        {},
        [acme, bold, cool].flatMap((each) => [anUpsert(each), anUpsert({ ...each, name: each.cluster })]),
      ),
    );

    // The syncs interleave, and a key that one of them names says nothing of its namesake in
    // another cluster.
    t.is((await mustPush(lane, [aBegin(), aClusterBegin(acme), aClusterBegin(bold), aKeep(bold), aClusterEnd(acme)])).at(-1), 'swept 2');
    t.deepEqual(await namesOf(store), ['bold', 'one', 'cool', 'one']);
    t.is((await sliceOf(store))?.syncedTerm, 0, 'not all of it is synced');
    t.is((await mustPush(lane, [aKeep({ ...bold, name: 'bold' }), aClusterEnd(bold)])).at(-1), 'swept 0');
    t.is((await mustPush(lane, [anEnd()])).at(-1), 'swept 2');

    t.deepEqual(await namesOf(store), ['bold', 'one']);
    t.is((await sliceOf(store))?.syncedTerm, firstTerm);
  });

  test('a logical cluster that begins again starts over, and the end of the full sync does not end it', async (t) => {
    const { store, lane } = await claimed(t);
    const acme = { cluster: 'acme' };
    await mustPush(lane, [anUpsert({ ...acme, name: 'a' }), anUpsert({ ...acme, name: 'b' })]);

    const syncing = [aBegin(), aClusterBegin(acme), aKeep({ ...acme, name: 'a' }), aKeep({ ...acme, name: 'b' }), aClusterBegin(acme)];
    t.is((await mustPush(lane, [...syncing, aKeep({ ...acme, name: 'b' }), anEnd()])).at(-1), 'swept 0');
    t.is((await mustPush(lane, [aClusterEnd(acme)])).at(-1), 'swept 1');

    t.deepEqual(await namesOf(store), ['b']);
  });

  test('the end of a full sync removes nothing of a logical cluster that is under way, however much there is', async (t) => {
    const { store, lane } = await claimed(t);
    const [acme, bold] = [{ cluster: 'acme' }, { cluster: 'bold' }];
    const many = Array.from({ length: 600 }, (_, i) => anUpsert({ ...(i % 2 === 0 ? acme : bold), name: `of-${i}` }));
    await mustPush(lane, [...many, anUpsert({ ...bold, name: 'kept' })]);

    t.is((await mustPush(lane, [aBegin(), aClusterBegin(acme), aKeep({ ...bold, name: 'kept' }), anEnd()])).at(-1), 'swept 300');
    t.is((await namesOf(store)).length, 301);
    t.is((await sliceOf(store))?.syncedTerm, 0, 'not all of it may be here');
    t.is((await mustPush(lane, [aKeep({ ...acme, name: 'of-0' }), aClusterEnd(acme)])).at(-1), 'swept 299');
    t.is((await sliceOf(store))?.syncedTerm, firstTerm);

    t.deepEqual(await namesOf(store), ['of-0', 'kept']);
    await mustPush(lane, [aBegin(), aKeep({ ...acme, name: 'of-0' }), anEnd()]);
    t.deepEqual(await namesOf(store), ['of-0'], 'a sync of all begins with none under way');
  });

  test('a slice counts as synced once the clusters under way at its end have ended, whichever begin later', async (t) => {
    const { store, lane } = await claimed(t);
    const [acme, bold, cool] = [{ cluster: 'acme' }, { cluster: 'bold' }, { cluster: 'cool' }];
    const isSynced = async (): Promise<boolean> => (await sliceOf(store))?.syncedTerm === firstTerm;
    await mustPush(lane, [aBegin(), aClusterBegin(acme), aClusterBegin(bold), anEnd()]);

    await mustPush(lane, [aClusterBegin(acme), aClusterBegin(cool), aClusterEnd(bold)]);
    t.false(await isSynced());
    await mustPush(lane, [aClusterEnd(acme)]);
    t.true(await isSynced());

    await mustPush(lane, [aBegin(), aClusterBegin(acme), aClusterEnd(acme), aClusterBegin(acme), anEnd()]);
    t.true(await isSynced(), 'all of it has been here since the slice began');

    await mustPush(lane, [aBegin(), aClusterBegin(acme), anEnd(), anInvalidation()]);
    await mustPush(lane, [aClusterBegin(acme), aClusterEnd(acme)]);
    t.false(await isSynced(), 'what was invalidated begins anew');
  });

  test('the end of a logical cluster removes nothing if no begin since the slice began counts, or if the slice was invalidated', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [anUpsert()]);

    for (const pushes of [
      [aClusterEnd()],
      [aBegin(), aClusterEnd()],
      [aClusterBegin(), aBegin(), aClusterEnd()],
      [aClusterBegin(), anInvalidation(), aClusterEnd()],
      [aClusterBegin({ cluster: 'bold' }), aClusterEnd()],
      [aClusterBegin(), aClaim(), aClusterEnd()],
      [aClusterBegin(), anEnd()],
    ]) {
      const outcomes = await lane.push(pushes);
      t.is(outcomes.at(-1)?.kind, 'unbegun', JSON.stringify(pushes));
      await mustPush(lane, [anInvalidation()]);
    }

    t.deepEqual(await namesOf(store), ['one']);
  });

  test('a large logical cluster is swept in steps, and other logical clusters lose nothing', async (t) => {
    const { store, lane } = await claimed(t);
    const named = (cluster: string, i: number) => anUpsert({ cluster, name: `${cluster}-${String(i).padStart(4, '0')}` });
    await mustPush(
      lane,
      ['acme', 'bold', 'cool'].flatMap((cluster) => Array.from({ length: 700 }, (_, i) => named(cluster, i))),
    );
    const bold = { cluster: 'bold' };

    const outcomes = await mustPush(lane, [aClusterBegin(bold), named('bold', 0), named('bold', 699), aClusterEnd(bold), anUpsert(bold)]);

    t.deepEqual(outcomes, ['unchanged', 'unchanged', 'unchanged', 'swept 698', 'written']);
    const names = await namesOf(store);
    t.deepEqual([names.length, names.filter((name) => name.startsWith('bold'))], [1_403, ['bold-0000', 'bold-0699']]);
  });

  test('an end without a begin removes nothing: none came, it has ended, was invalidated, or another claim came between', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [anUpsert()]);

    for (const pushes of [
      [anEnd()],
      [aBegin(), aKeep(), anEnd(), anEnd()],
      [aBegin(), anInvalidation(), anEnd()],
      [aBegin(), aClaim(), anEnd()],
      [aBegin({ resource: 'others' }), anEnd()],
    ]) {
      const outcomes = await lane.push(pushes);
      t.is(outcomes.at(-1)?.kind, 'unbegun', JSON.stringify(pushes.map(({ kind }) => kind)));
      await mustPush(lane, [anInvalidation()]);
    }

    t.deepEqual(await namesOf(store), ['one']);
  });

  test('a slice is synced from its end to the next begin or invalidate, and ever synced from its first end on', async (t) => {
    const { store, lane } = await claimed(t);
    const facts = async () => {
      const state = await sliceOf(store);
      return state && [state.syncedTerm, state.everSynced];
    };

    t.is(await facts(), undefined);
    await mustPush(lane, [aBegin()]);
    t.is(await facts(), undefined, 'it holds nothing and was never synced');
    await mustPush(lane, [anUpsert()]);
    t.deepEqual(await facts(), [0, false]);
    await mustPush(lane, [anEnd()]);
    t.deepEqual(await facts(), [firstTerm, true]);
    await mustPush(lane, [anInvalidation()]);
    t.deepEqual(await facts(), [0, true]);
    await mustPush(lane, aFullSync({}, [anUpsert()]));
    t.deepEqual(await facts(), [firstTerm, true]);
    await mustPush(lane, [aClaim('amber', 2_000), aBegin({}, 2_000)]);
    t.deepEqual(await facts(), [0, true]);
    await mustPush(lane, [anEnd({}, 2_000)]);

    t.deepEqual(await facts(), [2_000, true]);
    t.is((await sliceOf(store))?.objects, 0, 'a slice that was ever synced is listed though it holds nothing');
  });

  test('a restart between begin and end keeps all objects, and the slice is not synced', async (t) => {
    const { engine, lane } = await claimed(t);
    await mustPush(lane, aFullSync({}, [anUpsert({ name: 'a' }), anUpsert({ name: 'b' })]));
    await mustPush(lane, [aBegin(), aKeep({ name: 'a' })]);

    const store = await engine.restart();

    t.deepEqual(await namesOf(store), ['a', 'b']);
    t.like(await sliceOf(store), { objects: 2, syncedTerm: 0, everSynced: true });
    t.deepEqual(outcomeTexts(await store.writer.lane().push([aClaim(), anEnd()])), ['acquired', 'unbegun']);
    t.deepEqual(await namesOf(store), ['a', 'b']);
  });

  test('the end of a long sync lets others commit between its steps, and is answered when it is complete', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, manyUpserts());

    const ended = mustPush(lane, [aBegin(), aKeep({ name: 'n7' }), anEnd()]);
    const left = await afterNextCommit(store, async () => {
      await mustWrite(store, { ...aPut({ name: 'between' }, 'absent'), bySource: true });
      return (await namesOf(store)).length;
    });

    t.true(left > 2, `${left} objects were left`);
    t.is((await ended).at(-1), `swept ${manyObjects - 1}`);
    t.deepEqual(await namesOf(store), ['between', 'n7']);
  });

  test('pushes after the end of a small slice are decided with it, however much the same commit has added to the slice', async (t) => {
    const { store, lane } = await claimed(t);
    const answered: string[] = [];
    const asked = async (pushes: readonly Push[]): Promise<void> => {
      answered.push(outcomeTexts(await lane.push(pushes)).at(-1) ?? '');
    };

    const added = asked(Array.from({ length: 300 }, (_, i) => anUpsert({ name: `n${i}` })));
    const synced = asked([aBegin(), anUpsert({ name: 'kept' }), anEnd()]);
    const followed = asked([anUpsert({ name: 'behind' }), anEnd()]);
    await asked([aKeep()]);

    t.deepEqual(answered, ['written', 'swept 300', 'unbegun', 'unchanged']);
    await Promise.all([added, synced, followed]);
    t.deepEqual(await namesOf(store), ['behind', 'kept']);
  });

  test('a begin in the middle of an end voids the end, and the new sync counts', async (t) => {
    const { store, lane } = await claimed(t);
    const other = store.writer.lane();
    await mustPush(lane, manyUpserts());

    const ended = lane.push([aBegin(), anEnd()]);
    await afterNextCommit(store, () => mustPush(other, [aBegin()]));

    t.deepEqual(outcomeTexts(await ended), ['unchanged', 'unbegun']);
    t.like(await sliceOf(store), { syncedTerm: 0, everSynced: false });
    const left = (await namesOf(store)).length;
    t.true(left > 0);
    t.deepEqual(await mustPush(other, [anEnd()]), [`swept ${left}`]);
  });

  test('a claim in the middle of an end fences it', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, manyUpserts());

    const ended = lane.push([aBegin(), anEnd()]);
    await afterNextCommit(store, () => mustPush(store.writer.lane(), [aClaim('amber', 2_000)]));

    t.deepEqual(outcomeTexts(await ended), ['unchanged', 'fenced by 2000']);
    t.true((await namesOf(store)).length > 0);
  });

  test('a claim voids a long end of its own lane and does not wait for it; pushes between the two stay before the claim', async (t) => {
    for (const [term, ended] of [
      [2_000, 'fenced by 2000'],
      [firstTerm, 'unbegun'],
    ] as const) {
      const { store, lane } = await claimed(t);
      await mustPush(lane, manyUpserts());

      const sync = lane.push([aBegin(), anEnd()]);
      const answered: string[] = [];
      const between = afterNextCommit(store, async () => {
        const left = lane.push([anUpsert({ name: 'between' })]).then((outcomes) => answered.push(...outcomeTexts(outcomes)));
        await mustPush(lane, [aClaim('amber', term)]);
        answered.push('claimed');
        await left;
      });

      t.deepEqual(outcomeTexts(await sync), ['unchanged', ended]);
      await between;
      t.deepEqual(answered, [term === firstTerm ? 'written' : 'fenced by 2000', 'claimed']);
      t.true((await namesOf(store)).length > 1);
    }
  });

  test('a fenced claim leaves an end of its lane alone', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, manyUpserts());

    const sync = mustPush(lane, [aBegin(), anEnd()]);
    const older = await afterNextCommit(store, () => lane.push([aClaim('amber', 7)]));

    t.deepEqual(outcomeTexts(older), [`fenced by ${firstTerm}`]);
    t.deepEqual(await sync, ['unchanged', `swept ${manyObjects}`]);
  });

  // Removal

  test('a removed shard loses its objects of every type, once, and keeps its old processes out', async (t) => {
    const { store, lane } = await claimed(t);
    const places = [{}, { name: 'two' }, { resource: 'others' }, { identity: 'hash' }];
    await mustPush(lane, [
      aClaim('birch'),
      anUpsert({ shard: 'birch', name: 'stays' }),
      ...aFullSync(
        {},
        places.map((place) => anUpsert(place)),
      ),
    ]);
    const swept: number[] = [];
    const deleted: number[] = [];
    store.commits.subscribe((commit) => {
      swept.push(...commit.swept);
      deleted.push(...commit.changes.map(({ revision }) => revision));
    });

    const outcomes = await store.writer.lane().push([aClear('amber', { nowMs: 5_000 }), aClear('amber', { nowMs: 0 })]);

    t.deepEqual(outcomeTexts(outcomes), ['swept 4', 'swept 0']);
    t.is(swept.length, 4);
    t.deepEqual(
      swept.toSorted((a, b) => a - b),
      deleted,
    );
    t.deepEqual(
      [...store.state.slices].map(({ slice }) => slice.shard),
      [aKey({ shard: 'birch' }).shard],
    );
    t.deepEqual([...store.state.shards][0], {
      shard: aKey().shard,
      ...localState,
      origin: store.cacheId,
      via: undefined,
      term: 5_001,
      removed: true,
      process: 'process-1000',
    });
    t.deepEqual(
      outcomeTexts(await lane.push([anUpsert(), aClaim(), aClaim('amber', 5_001)])),
      Array.from({ length: 3 }, () => 'fenced by 5001, removed'),
    );
    t.deepEqual(outcomeTexts(await lane.push([aClaim('amber', 6_000), ...aFullSync({}, [anUpsert({}, {}, 6_000)], 6_000)])), [
      'acquired',
      'unchanged',
      'written',
      'swept 0',
    ]);
    t.deepEqual([...store.state.shards][0], {
      shard: aKey().shard,
      ...localState,
      term: 6_000,
      process: aProcess(6_000),
      origin: store.cacheId,
    });
  });

  test('a shard of plain HTTP writers can be removed too, and the next plain write makes it plain again', async (t) => {
    const engine = await open(t, {});
    const first = await mustWrite(engine.store, aPut({}, 'absent'));
    t.like([...engine.store.state.shards][0], { via: 'local', term: 1, plain: true });
    await mustPush(engine.store.writer.lane(), [aClear('amber', { nowMs: 5_000 })]);
    t.deepEqual(await engine.store.writer.submit(aPut({}, first.revision)), { kind: 'refused', why: 'absent' });
    t.like([...engine.store.state.shards][0], { via: undefined, term: 5_000, removed: true, plain: false }, 'a refused write does not');

    await mustWrite(engine.store, aPut({}, 'absent'));

    t.like([...engine.store.state.shards][0], { via: 'local', term: 5_001, removed: false, plain: true });
    t.like([...(await engine.restart()).state.shards][0], { via: 'local', term: 5_001, removed: false, plain: true });
  });

  test('a shard that is emptied without a fence keeps its term, and a sync under way becomes void', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [...aFullSync({}, [anUpsert()]), aBegin()]);

    t.deepEqual(await mustPush(store.writer.lane(), [aClear('amber', { fence: false })]), ['swept 1']);

    t.like([...store.state.shards][0], { term: firstTerm, removed: false });
    t.deepEqual([...store.state.slices], []);
    t.deepEqual(outcomeTexts(await lane.push([anEnd(), ...aFullSync({}, [anUpsert()])])), ['unbegun', 'unchanged', 'written', 'swept 0']);
  });

  for (const [what, removal] of [
    ['a shard', aClear('amber', { fence: false })],
    ['a type', aDrop()],
  ] as const)
    test(`an object that is written or synced while ${what} is removed stays`, async (t) => {
      const { store, lane } = await claimed(t);
      await mustPush(lane, manyUpserts());
      const names = (await namesOf(store)).toSorted();
      const [first, last] = [names[0]!, names.at(-1)!];

      const removed = mustPush(store.writer.lane(), [removal]);
      await afterNextCommit(store, async () => {
        await mustWrite(store, aPut({ name: first }, 'absent'));
        await mustPush(lane, [anUpsert({ name: last })]);
      });

      t.deepEqual(await removed, [`swept ${manyObjects - 1}`]);
      t.deepEqual(await namesOf(store), [first, last]);
    });

  test('two removals of one shard at a time remove nothing that was synced since both began', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, manyUpserts());
    const cleared = [store.writer.lane(), store.writer.lane()].map((each) => mustPush(each, [aClear('amber', { fence: false })]));

    await afterNextCommit(store, () =>
      mustPush(lane, [aClaim('amber', 2_000), ...aFullSync({ resource: 'others' }, [anUpsert({ resource: 'others' }, {}, 2_000)], 2_000)]),
    );
    await mustPush(lane, [anUpsert({ name: 'new' }, {}, 2_000)]);
    const removed = (await Promise.all(cleared)).flat().map((text) => Number(text.replace('swept ', '')));

    t.is(removed[0]! + removed[1]!, manyObjects);
    t.deepEqual(await namesOf(store), ['new']);
    t.truthy(await store.objects.get(aKey({ resource: 'others' })));
    t.like(await sliceOf(store, { resource: 'others' }), { objects: 1, syncedTerm: 2_000, everSynced: true });
  });

  test('a type that is dropped loses its objects on every shard, and its slices are forgotten', async (t) => {
    const { engine, store, lane } = await claimed(t);
    await mustPush(lane, [aClaim('birch'), ...aFullSync({}, [anUpsert(), anUpsert({ name: 'two' })])]);
    await mustPush(lane, [
      ...aFullSync({ shard: 'birch' }, [anUpsert({ shard: 'birch' })]),
      ...aFullSync({ shard: 'birch', identity: 'h' }, []),
    ]);
    await mustPush(lane, aFullSync({ resource: 'others' }, [anUpsert({ resource: 'others' })]));
    const swept: number[] = [];
    store.commits.subscribe((commit) => swept.push(...commit.swept));

    t.deepEqual(await mustPush(store.writer.lane(), [aDrop()]), ['swept 3']);

    t.deepEqual(await namesOf(store), []);
    t.is(swept.length, 3);
    const slices = async (now: Store) => [...now.state.slices].map(({ slice }) => formatSlice(slice)).toSorted();
    const left = [aSlice({ resource: 'others' }), aSlice({ shard: 'birch', identity: 'h' })].map(formatSlice);
    t.deepEqual(await slices(store), left.toSorted());
    t.deepEqual(await mustPush(store.writer.lane(), [aDrop({ identity: 'h' }), aDrop()]), ['swept 0', 'swept 0']);
    t.deepEqual(await slices(await engine.restart()), [formatSlice(aSlice({ resource: 'others' }))]);
  });

  test('a drop leaves objects that were written after the revision that it names', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [...aFullSync({}, [anUpsert(), anUpsert({ name: 'changed' })])]);
    const through = store.revisions.published;
    await mustPush(lane, [anUpsert({ name: 'changed' }, { spec: 'new' }), anUpsert({ name: 'new' })]);

    t.deepEqual(await mustPush(store.writer.lane(), [aDrop({}, through)]), ['swept 1']);

    t.deepEqual((await namesOf(store)).toSorted(), ['changed', 'new']);
  });

  test('a clear leaves objects that were written after the revision that it names', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [...aFullSync({}, [anUpsert(), anUpsert({ name: 'changed' })])]);
    const through = store.revisions.published;
    await mustPush(lane, [anUpsert({ name: 'changed' }, { spec: 'new' }), anUpsert({ name: 'new' })]);

    t.deepEqual(await mustPush(store.writer.lane(), [aClear('amber', { fence: false, through })]), ['swept 1']);

    t.deepEqual((await namesOf(store)).toSorted(), ['changed', 'new']);
  });

  test('a sync that began before its type was dropped is void; one that begins afterwards makes the slice synced again', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [...aFullSync({}, [anUpsert()]), aBegin(), aKeep()]);

    t.deepEqual(await mustPush(store.writer.lane(), [aDrop()]), ['swept 1']);

    t.deepEqual(outcomeTexts(await lane.push([anEnd()])), ['unbegun']);
    t.is(await sliceOf(store), undefined);
    await mustPush(lane, aFullSync({}, [anUpsert()]));
    t.like(await sliceOf(store), { objects: 1, syncedTerm: firstTerm, everSynced: true });
  });

  test('objects that are written or synced while a type is dropped stay; the slice counts as synced only once it was resynced', async (t) => {
    const { store, lane } = await claimed(t);
    const birch = { shard: 'birch', name: 'kept' };
    await mustPush(lane, [aClaim('birch'), ...aFullSync({}, manyUpserts()), ...aFullSync(birch, [anUpsert(birch)])]);
    const names = (await list(store, aScope({ shard: 'amber' }))).map(({ key }) => key.name);
    const [first, last] = [names[0]!, names.at(-1)!];

    const dropped = mustPush(store.writer.lane(), [aDrop()]);
    await afterNextCommit(store, async () => {
      await mustWrite(store, aPut({ name: first }, 'absent'));
      await mustPush(lane, [...aFullSync(birch, [anUpsert(birch)]), anUpsert({ name: last })]);
    });

    t.deepEqual(await dropped, [`swept ${manyObjects - 1}`]);
    t.deepEqual((await namesOf(store)).toSorted(), [first, 'kept', last].toSorted());
    t.like(await sliceOf(store), { objects: 2, syncedTerm: 0, everSynced: false });
    t.like(await sliceOf(store, birch), { objects: 1, syncedTerm: firstTerm, everSynced: true });
  });

  // What is known of shards and slices

  test('slices count the objects that they hold, whoever writes them, and show when they changed; a restart keeps both', async (t) => {
    const { engine, store, lane } = await claimed(t);
    const resources = ['apiexports', 'others'];
    const agree = async (now: Store, title: string): Promise<void> =>
      void t.deepEqual(await counted(now), await recount(now, resources), title);

    const { revision } = await mustWrite(store, aPut({ name: 'h' }, 'absent', { spec: 'short' }));
    await mustWrite(store, aPut({ name: 'h', shard: 'birch' }, 'absent'));
    await agree(store, 'created');
    await mustWrite(store, aPut({ name: 'h' }, revision, { spec: 'rather longer' }));
    await mustPush(lane, [anUpsert({ name: 'h' }, { spec: 'x' }), anUpsert({ name: 'p' }), anUpsert({ name: 'p', resource: 'others' })]);
    await agree(store, 'updated, pushed');
    await mustWrite(store, aDelete({ name: 'h' }));
    await agree(store, 'deleted, and a survivor rewritten');
    await mustPush(lane, [aRetract({ name: 'p', resource: 'others' })]);
    await agree(store, 'a slice that is empty and was never synced is gone');
    await mustPush(lane, [aBegin(), anUpsert({ name: 'q' }), anEnd()]);
    await agree(store, 'a sync');
    t.true([...store.state.slices].every(({ changedMs }) => changedMs > 0));

    await mustPush(lane, [aClaim('birch', 1_700_000_000_123)]);
    const [before, shards] = [[...store.state.slices], [...store.state.shards]];
    const again = await engine.restart();
    const shown = (slices: readonly SliceState[]): readonly SliceState[] =>
      slices.map((slice) => (engine.traits.keepsTimes ? slice : { ...slice, changedMs: 1 })).toSorted(byText);
    t.deepEqual(shown([...again.state.slices]), shown(before));
    t.deepEqual([...again.state.shards], shards);
    t.deepEqual(
      shards.map(({ term }) => term),
      [firstTerm, 1_700_000_000_123],
    );
    await mustWrite(again, aDelete({ name: 'q' }));
    await mustWrite(again, aDelete({ name: 'h', shard: 'birch' }));
    t.deepEqual(await counted(again), [`${formatSlice(aSlice())} 0 0`]);
  });

  test('a cache keeps its id of 16 digits; every start begins an epoch, which is in versions if the engine orders writes', async (t) => {
    const engine = await open(t, {});
    const { cacheId, epoch } = engine.store;

    const again = await engine.restart();

    t.regex(cacheId, /^[0-9a-f]{16}$/);
    t.is(again.cacheId, cacheId);
    t.true(again.epoch > epoch);
    if (!engine.traits.ordersWrites) return;
    t.true(again.revisions.format(0).startsWith(String(epoch)));
    const { resourceVersion } = await mustWrite(again, aPut({}, 'absent'));
    t.true(resourceVersion.startsWith(String(again.epoch)));
  });

  // Lanes

  test('a lane answers in its order, whether a push holds more than a commit or nothing', async (t) => {
    const { engine, store, lane } = await claimed(t);
    const answered: string[] = [];
    const revisions: number[] = [];
    const push = async (name: string, pushes: readonly Push[]): Promise<readonly PushOutcome[]> => {
      const outcomes = await lane.push(pushes);
      answered.push(name);
      revisions.push(...outcomes.flatMap((outcome) => (outcome.kind === 'written' ? [outcome.revision] : [])));
      t.true(store.revisions.published >= (revisions.at(-1) ?? 0), 'an answered push must be published');
      return outcomes;
    };

    t.deepEqual(await push('nothing', []), []);
    const [large] = await Promise.all([push('large', manyUpserts()), push('small', [anUpsert({ name: 'last' })])]);

    t.deepEqual(answered, ['nothing', 'large', 'small']);
    t.is(large.length, manyObjects);
    const rising = revisions.toSorted((a, b) => a - b);
    if (engine.traits.ordersWrites) t.deepEqual(revisions, rising);
    t.is(new Set(revisions).size, manyObjects + 1);
  });

  test('a lane that is full does not hold up another one', async (t) => {
    const { store, lane } = await claimed(t);
    const other = store.writer.lane();
    await mustPush(other, [aClaim('birch')]);
    let isThrough = false;

    const flood = Promise.all([lane.push(manyUpserts()), lane.push(manyUpserts())]).then(() => (isThrough = true));
    await mustPush(other, [anUpsert({ shard: 'birch' })]);
    t.false(isThrough);
    await mustWrite(store, aPut({ shard: 'cedar' }, 'absent'));

    t.false(isThrough);
    t.true(await flood);
  });

  test('a pusher waits for room while too many of its pushes wait, and goes on once they are decided', async (t) => {
    const { lane } = await claimed(t);
    await lane.drained();
    const flood = lane.push(manyUpserts());
    let entered = false;

    const room = lane.drained().then(() => (entered = true));
    await Promise.resolve();
    t.false(entered);
    await flood;

    t.true(await room);
  });

  test('a store that is about to close refuses the next commit of a sweep, and goes on with everything else', async (t) => {
    const { engine, store, lane } = await claimed(t);
    await mustPush(lane, manyUpserts());

    const ended = lane.push([aBegin(), anEnd(), anUpsert({ name: 'behind' })]);
    await afterNextCommit(store, async () => store.beginClose());

    t.deepEqual(outcomeTexts(await ended), ['unchanged', 'unavailable', 'written']);
    t.deepEqual(outcomeTexts(await lane.push([anUpsert({ name: 'late' })])), ['written']);
    await mustWrite(store, aPut({ name: 'request' }, 'absent'));
    const left = (await namesOf(store)).length;
    t.true(left > 3);
    t.is((await list(await engine.restart(), aScope())).length, left);
  });

  test('a store that closes decides earlier pushes, refuses later ones, and lets nobody wait', async (t) => {
    const { engine, store, lane } = await claimed(t);
    const before = lane.push(manyUpserts());
    const waiting = lane.drained();

    const closed = store.close();
    const late = await lane.push([anUpsert({ name: 'late' })]);
    await waiting;
    await closed;

    t.true((await before).every(({ kind }) => kind === 'written'));
    t.like(late[0], { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable' } });
    t.is((await list(await engine.restart(), aScope())).length, manyObjects);
  });
}

const byText = (a: SliceState, b: SliceState): number => (formatSlice(a.slice) < formatSlice(b.slice) ? -1 : 1);
