import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { compose } from '../../../src/json/compose.js';
import { scanObject } from '../../../src/json/object-text.js';
import type { Push } from '../../../src/domain/push.js';
import { formatSlice, type Slice } from '../../../src/domain/slice.js';
import { everyType, typeOf } from '../../support/intake/a-receiver.js';
import { aClusterCachedResource, aKey } from '../../support/objects.js';
import { aClaim, aFullSync, aSlice, mustPush } from '../../support/pushes.js';
import type { ConnectionEnd } from './connection-pair.js';
import { anUpsert } from './an-upsert.js';
import { alwaysThere, TreeRig, type RigCache } from './tree-rig.js';
import { claimSentTo, scriptedChild } from './scripted-child.js';

const exports = aSlice();
/** The pusher of amber now names no type but its schemas. */
const pushers = { ...alwaysThere, leavesOut: ({ resource }: Slice) => resource.resource !== 'apiresourceschemas' };
const newTerm = 2_000;
const newClaim = [aClaim({ term: newTerm }), ...aFullSync({ resource: 'apiresourceschemas' }, [], newTerm)];
const aType = (i: number): Slice => aSlice({ group: 'things.io', resource: 'things', identity: `i${i}` });
const instances = aSlice({ group: 'machines.svm.io', resource: 'instances', identity: 'A1' });

/**
 * A leaf with one export of amber, below caches that have since lost their disks; the first of them
 * is the root.
 */
async function leafBelow(rig: TreeRig, names: readonly string[]): Promise<RigCache> {
  const caches: RigCache[] = [];
  for (const [i, name] of [...names, 'leaf'].entries()) caches.push(await rig.cache(name, { urls: names.slice(i - 1, i) }));
  const [root] = caches;
  const leaf = caches.at(-1);
  if (root === undefined || leaf === undefined) throw new Error('there is no cache');
  await mustPush(root.store.writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert()])]);
  await rig.advance(10_000);
  for (const { stop } of caches.toReversed()) stop();
  return leaf;
}

function hold({ child }: Readonly<{ child: ConnectionEnd }>, slices: readonly Slice[]): void {
  child.send({ kind: 'resume', position: '', held: slices.map((slice) => ({ slice, filterHash: '', syncedTerm: 0 })), isLast: false });
}

/** The slices that the child of a link asked its parent about, after the opening. */
function askedOver([child]: readonly [ConnectionEnd, ConnectionEnd]): readonly string[] {
  return child.sent.flatMap((frame) => (frame.kind === 'resume' && !frame.isLast ? frame.held.map(({ slice }) => formatSlice(slice)) : []));
}

test('a child loses what its shard no longer has, even if a cache two hops away reports 1,000 slices of undeclared types', async (t) => {
  const rig = new TreeRig();
  const former = await leafBelow(rig, ['root', 'upper', 'lower']);
  t.is(former.known.slice(exports)?.objects, 1);
  const root = await rig.cache('root', { pushers });
  const upper = await rig.cache('upper', { urls: ['root'] });
  const lower = await rig.cache('lower', { urls: ['upper'] });
  await mustPush(root.store.writer.lane(), newClaim);
  await rig.advance(10_000);
  const hostile = await scriptedChild(rig, lower);
  hostile.child.send({ ...claimSentTo(hostile), isYours: true });
  hold(
    hostile,
    Array.from({ length: 1_000 }, (_, i) => aType(i)),
  );
  await rig.advance(5_000);

  const leaf = await rig.cache('leaf', { urls: ['lower'], disk: former.disk });
  t.teardown(() => [leaf, lower, upper, root].forEach(({ stop }) => stop()));
  await rig.advance(60_000);

  t.is(leaf.known.slice(exports)?.objects, 0);
});

test('a child loses what its shard no longer has, even if a cache two hops away has 1,000 slices of formerly declared types', async (t) => {
  const rig = new TreeRig();
  const former = await leafBelow(rig, ['root', 'upper', 'lower']);
  let areDeclared = true;
  const options = { typeOf: ((type, shard) => typeOf(type) ?? (areDeclared ? everyType(type, shard) : undefined)) as typeof everyType };
  const schemasOnly = { ...alwaysThere, leavesOut: ({ resource }: Slice) => resource.resource === 'apiexports' };
  const root = await rig.cache('root', { ...options, pushers: schemasOnly });
  const upper = await rig.cache('upper', { ...options, urls: ['root'] });
  const lower = await rig.cache('lower', { ...options, urls: ['upper'] });
  await mustPush(root.store.writer.lane(), newClaim);
  await rig.advance(10_000);
  const hostile = await scriptedChild(rig, lower);
  hostile.child.send({ ...claimSentTo(hostile), isYours: true });
  const held = Array.from({ length: 1_000 }, (_, i) => aType(i));
  hold(hostile, held);
  await rig.advance(5_000);
  const leaf = await rig.cache('leaf', { urls: ['lower'], disk: former.disk });
  t.teardown(() => [leaf, lower, upper, root].forEach(({ stop }) => stop()));
  await rig.advance(5_000);
  t.is(leaf.known.slice(exports)?.objects, 1);

  areDeclared = false;
  for (const { resource } of held) for (const { tree } of [root, upper, lower]) tree.drop(resource);
  await rig.advance(60_000);

  t.is(leaf.known.slice(exports)?.objects, 0);
});

largeTest(
  'a child of 1,101 shards loses what the last of them no longer has, even if the caches above it have lost their disks',
  async (t) => {
    const rig = new TreeRig();
    const former = await rig.cache('root');
    const before = await rig.cache('middle', { urls: ['root'] });
    const earlier = await rig.cache('leaf', { urls: ['middle'] });
    const shards = [...Array.from({ length: 1_100 }, (_, i) => `s${i}`), 'amber'];
    const pushAll = async ({ store }: RigCache, term?: number): Promise<void> => {
      for (const shard of shards)
        await mustPush(store.writer.lane(), [
          aClaim({ shard, ...(term && { term }) }),
          ...aFullSync({ shard, resource: 'apiresourceschemas' }, [], term),
        ]);
    };
    await pushAll(former);
    await mustPush(former.store.writer.lane(), aFullSync({}, [anUpsert()]));
    await rig.advance(20_000);
    t.is(earlier.known.slice(exports)?.objects, 1);
    for (const { stop } of [earlier, before, former]) stop();
    await rig.advance(5_000);

    const root = await rig.cache('root', { pushers });
    await pushAll(root, newTerm);
    const middle = await rig.cache('middle', { urls: ['root'] });
    const leaf = await rig.cache('leaf', { urls: ['middle'], disk: earlier.disk });
    t.teardown(() => [leaf, middle, root].forEach(({ stop }) => stop()));
    await rig.advance(120_000);

    t.is(leaf.known.slice(exports)?.objects, 0);
  },
);

test('a cache asks about a slice that only a child has, once its type is declared', async (t) => {
  const rig = new TreeRig();
  let isDeclared = false;
  const root = await rig.cache('root', { pushers, typeOf: everyType });
  const middle = await rig.cache('middle', {
    urls: ['root'],
    typeOf: (type, shard) => typeOf(type) ?? (isDeclared ? everyType(type, shard) : undefined),
  });
  t.teardown(() => [middle, root].forEach(({ stop }) => stop()));
  await mustPush(root.store.writer.lane(), newClaim);
  await rig.advance(5_000);
  const [toRoot] = rig.connections;
  if (toRoot === undefined) throw new Error('there is no link');
  const child = await scriptedChild(rig, middle);
  child.child.send({ ...claimSentTo(child), isYours: true });
  hold(child, [instances]);
  await rig.advance(5_000);
  t.deepEqual(askedOver(toRoot), []);

  isDeclared = true;
  const place = { group: 'cache.kcp.io', resource: 'clustercachedresources', name: 'instances' };
  await mustPush(root.store.writer.lane(), aFullSync(place, [aDeclaration()], newTerm));
  await rig.advance(5_000);

  t.deepEqual(askedOver(toRoot), [formatSlice(instances)]);
  t.is(middle.known.slice(instances)?.objects, 0);
  const ended = child.end.sent.flatMap((frame) => (frame.kind === 'end' ? [formatSlice(frame.slice)] : []));
  t.true(ended.includes(formatSlice(instances)));
});

test('a cache asks about a slice that a child reports while the parent is away, once that link opens again', async (t) => {
  const rig = new TreeRig();
  const former = await leafBelow(rig, ['root', 'middle']);
  const root = await rig.cache('root', { pushers });
  const middle = await rig.cache('middle', { urls: ['root'] });
  await mustPush(root.store.writer.lane(), newClaim);
  await rig.advance(5_000);
  root.stop();
  await rig.advance(1_000);
  const leaf = await rig.cache('leaf', { urls: ['middle'], disk: former.disk });
  await rig.advance(5_000);
  t.is(leaf.known.slice(exports)?.objects, 1);

  const again = await rig.cache('root', { pushers, disk: root.disk });
  t.teardown(() => [leaf, middle, again].forEach(({ stop }) => stop()));
  await rig.advance(60_000);

  t.is(leaf.known.slice(exports)?.objects, 0);
});

function aDeclaration(): Push {
  const key = aKey({ group: 'cache.kcp.io', resource: 'clustercachedresources', name: 'instances' });
  const { metadata, ...rest } = aClusterCachedResource('A1') as { metadata: { annotations: object } };
  const annotations = { ...metadata.annotations, 'kcp.io/cluster': key.cluster, 'kcp.io/shard': key.shard };
  const text = JSON.stringify({ ...rest, metadata: { ...metadata, uid: 'uid-of-instances', annotations } });
  const scanned = scanObject(new TextEncoder().encode(text), 100);
  const body = compose(scanned, { place: key, apiVersion: 'cache.kcp.io/v1alpha1', version: 'v1alpha1', metadata: {} });
  return { kind: 'upsert', key, body, path: undefined, by: { kind: 'pusher', term: newTerm } };
}
