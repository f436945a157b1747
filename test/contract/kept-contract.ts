/**
 * What every engine does with names that are kept on copies (domain/kept-names.ts): a push without
 * these names does not remove them.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { keptAnnotation, keptNames, parseKeptNames } from '../../src/domain/kept-names.js';
import type { PushLane, Store } from '../../src/domain/store-port.js';
import { annotationsOf, labelsOf } from '../../src/domain/object-metadata.js';
import { aBody, aKey, aPut, aScope, type Content, type Place } from '../support/objects.js';
import { aBegin, aClaim, aClear, aFullSync, aMeet, anEnd, anUpsert, aRetract, mustPush, outcomeTexts } from '../support/pushes.js';
import { changesBehind, list, mustWrite } from './read-all.js';
import type { Engine, EngineBounds } from './store-contract.js';

const names = (text: string) => parseKeptNames([text]) ?? [];
const listed = keptNames({ annotations: names('apiexports.apis.kcp.io=x.io/cordon'), labels: names('apiexports.apis.kcp.io=x.io/zone') });
/** The annotations of an object on whose copy the intake has marked a kept name. */
const cordon = { 'x.io/cordon': 'why', [keptAnnotation]: 'x.io/cordon' };
const both = { ...cordon, [keptAnnotation]: 'x.io/cordon,label x.io/zone' };
const zone = { 'x.io/zone': 'a' };

export function registerKeptContract(open: (t: ExecutionContext, bounds: EngineBounds) => Promise<Engine>): void {
  const claimed = async (t: ExecutionContext): Promise<{ engine: Engine; store: Store; lane: PushLane }> => {
    const engine = await open(t, { keptNames: listed });
    const lane = engine.store.writer.lane();
    await mustPush(lane, [aClaim()]);
    return { engine, store: engine.store, lane };
  };

  /** A plain write that changes only kept names. */
  const keep = async (store: Store, content: Content, place: Place = {}): Promise<number> => {
    const { revision } = (await store.objects.get(aKey(place)))!;
    return (await mustWrite(store, { ...aPut(place, revision, content), keeps: true })).revision;
  };

  const keptOn = async (store: Store): Promise<string> => {
    const object = await store.objects.get(aKey());
    if (object === undefined) return 'no object';
    const { body } = object;
    const { spec } = JSON.parse(Buffer.from(body.bytes).toString()) as { spec: unknown };
    return [annotationsOf(body).get('x.io/cordon'), labelsOf(body).get('x.io/zone'), JSON.stringify(spec)].join(' ');
  };

  test('kept names survive a pusher’s changes and a restart, in the store, in the change log and in what followers receive', async (t) => {
    const { engine, store, lane } = await claimed(t);
    await mustPush(lane, [anUpsert({}, { spec: 1 })]);
    const before = await keep(store, { annotations: both, labels: zone, spec: 1 });
    const followed: string[] = [];
    store.commits.subscribe(({ changes }) => {
      for (const change of changes)
        if (change.kind === 'put') followed.push(`${annotationsOf(change.object.body).get('x.io/cordon')} ${change.object.revision}`);
    });

    t.deepEqual(await mustPush(lane, [anUpsert({}, { spec: 2 })]), ['written']);

    const { revision } = (await store.objects.get(aKey()))!;
    t.is(await keptOn(store), 'why a 2');
    t.deepEqual(followed, [`why ${revision}`]);
    const changes = await changesBehind(store, aScope(), before);
    t.deepEqual(
      changes.map((change) => change.kind === 'put' && annotationsOf(change.object.body).get('x.io/cordon')),
      ['why'],
    );
    t.is(await keptOn(await engine.restart()), 'why a 2');
    await mustPush(engine.store.writer.lane(), [aClaim(), anUpsert({}, { spec: 3 })]);
    t.is(await keptOn(engine.store), 'why a 3');
  });

  test('a full sync that lacks only kept names changes nothing, and the slice stays synced', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, aFullSync({}, [anUpsert({}, { spec: 1 })]));
    const [pushed] = await list(store, aScope());
    await keep(store, { annotations: both, labels: zone, spec: 1 });
    const [slice] = [...store.state.slices];
    // The intake combines the pushed text and the kept names (intake.ts).
    t.not(slice?.syncedTerm, 0);
    await mustPush(lane, [anUpsert({}, { spec: 1 })]);
    const { revision } = (await store.objects.get(aKey()))!;

    t.deepEqual(await mustPush(lane, aFullSync({}, [anUpsert({}, { spec: 1 })])), ['unchanged', 'unchanged', 'swept 0']);

    t.is((await store.objects.get(aKey()))?.revision, revision);
    t.true(revision > (pushed?.revision ?? 0));
    t.is(await keptOn(store), 'why a 1');
  });

  test('a listed name that a pusher sends belongs to the pusher, and goes once a push lacks it', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [anUpsert()]);
    await keep(store, { annotations: both, labels: zone });

    await mustPush(lane, [anUpsert({}, { annotations: { 'x.io/cordon': 'own' } })]);
    t.is(await keptOn(store), 'own a {}');
    t.is(annotationsOf((await store.objects.get(aKey()))!.body).get(keptAnnotation), 'label x.io/zone');
    await mustPush(lane, [anUpsert()]);
    t.is(await keptOn(store), ' a {}');
  });

  test('neither a name that is not listed nor an object that arrives over a link keeps anything', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [anUpsert()]);
    await keep(store, { annotations: { 'x.io/other': 'a', [keptAnnotation]: 'x.io/other' } });
    await mustPush(lane, [anUpsert()]);
    t.deepEqual(annotationsOf((await store.objects.get(aKey()))!.body), annotationsOf(aBody(aKey())));

    await keep(store, { annotations: cordon });
    await mustPush(lane, [aMeet('c-parent'), aClaim({ via: 'parent', term: 2_000 }), anUpsert({}, { spec: 2 }, 'parent')]);
    t.is(await keptOn(store), '  2');
  });

  test('kept names go with their object', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, [anUpsert()]);
    await keep(store, { annotations: cordon });

    await mustPush(lane, [aRetract(), anUpsert()]);
    t.is(await keptOn(store), '  {}');

    await keep(store, { annotations: cordon });
    await mustPush(lane, aFullSync({}, []));
    await mustPush(lane, [anUpsert()]);
    t.is(await keptOn(store), '  {}');
  });

  test('a write of kept names saves no object from a sync that omits it, or from the removal of its shard', async (t) => {
    const { store, lane } = await claimed(t);
    await mustPush(lane, aFullSync({}, [anUpsert(), anUpsert({ name: 'two' })]));
    await mustPush(lane, [aBegin(), anUpsert({ name: 'two' })]);

    await keep(store, { annotations: cordon });
    await keep(store, { annotations: cordon }, { name: 'two' });

    t.deepEqual(outcomeTexts(await lane.push([anEnd()])), ['swept 1']);
    t.deepEqual(
      (await list(store, aScope())).map(({ key }) => key.name),
      ['two'],
    );
    t.deepEqual(
      [...store.state.slices].map(({ syncedTerm }) => syncedTerm > 0),
      [true],
    );
    await mustPush(lane, [aClear()]);
    t.deepEqual(await list(store, aScope()), []);
  });
}
