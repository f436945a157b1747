/**
 * Which removals by a policy are held while objects, ends and policies are in transit.
 * held-removals.test.ts tests what follows.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { deferred } from '../../../src/domain/base/promises.js';
import type { LinkPolicies } from '../../../src/domain/link-policies.js';
import type { LinkPolicy } from '../../../src/domain/link-policy.js';
import type { Frame } from '../../../src/frames/frame.js';
import { aPolicy } from '../../support/link-rules.js';
import { aClaim, aFullSync, aSlice, mustPush } from '../../support/pushes.js';
import { anUpsert } from './an-upsert.js';
import { Gate } from './gate.js';
import { TreeRig, type RigCache } from './tree-rig.js';

const exports = aSlice();
const everything = aPolicy({ types: ['*'] });
const keptOnly = aPolicy({ types: ['*'], clusters: ['kept'] });
const otherTypes = aPolicy({ types: ['apiresourceschemas.apis.kcp.io'] });

function offering(offer: LinkPolicy): LinkPolicies {
  return { forward: everything, follow: everything, children: new Map([['*', { accept: aPolicy({ shards: ['*'] }), offer }]]) };
}

function following(follow: LinkPolicy): LinkPolicies {
  return { forward: everything, follow, children: new Map() };
}

/**
 * A root with `count` objects, of which the first `kept` are in the cluster `kept`, and a leaf that
 * follows it.
 */
async function aRootAndLeaf(
  t: ExecutionContext,
  { count, kept = 0, follow = everything }: { count: number; kept?: number; follow?: LinkPolicy },
) {
  const rig = new TreeRig();
  const gate = new Gate();
  const root = await rig.cache('root', { policies: offering(everything) });
  const leaf = await rig.cache('leaf', { urls: ['root'], policies: following(follow), soon: gate.soon });
  t.teardown(() => [leaf, root].forEach(({ stop }) => stop()));
  const lane = root.store.writer.lane();
  const objects = (by?: number) =>
    Array.from({ length: count }, (_, i) =>
      anUpsert(`e${i}`, { cluster: i < kept ? 'kept' : 'acme', ...(by === undefined ? {} : { by }) }),
    );
  await mustPush(lane, [aClaim({ origin: root.store.cacheId }), ...aFullSync({}, objects())]);
  await rig.advance(5_000);
  t.is(leaf.known.slice(exports)?.objects, count);
  const deletes: string[] = [];
  leaf.store.commits.subscribe(({ changes }) => {
    for (const { kind, key } of changes) if (kind === 'delete') deletes.push(key.name);
  });
  return { rig, root, leaf, lane, gate, objects, deletes };
}

function heldAt({ logged }: RigCache): readonly unknown[] {
  return logged.flatMap(({ event, fields }) => (event === 'removal.held' ? [fields] : []));
}

/**
 * Delays frames to that cache, from the first frame of this kind on, until the returned function is
 * called.
 */
function delay(rig: TreeRig, kind: Frame['kind'], to: 'leaf' | 'root' = 'leaf'): () => void {
  const end = rig.connections[0]?.[to === 'leaf' ? 0 : 1];
  if (end === undefined) throw new Error('nobody connected');
  const late: Frame[] = [];
  const receive = end.receive.bind(end);
  end.receive = (frame) => {
    if (late.length > 0 || frame.kind === kind) late.push(frame);
    else receive(frame);
  };
  return () => {
    end.receive = receive;
    for (const frame of late) receive(frame);
  };
}

test('a policy that excludes many objects is held, even if the rest is updated repeatedly before the sync ends', async (t) => {
  const { rig, root, leaf, lane, objects, deletes } = await aRootAndLeaf(t, { count: 120, kept: 15 });
  // Until the next process has synced the slice, the root sends no end.
  const [acquired] = await lane.push([{ kind: 'acquire', shard: exports.shard, process: 'next', term: 0, nowMs: 0 }]);
  if (acquired?.kind !== 'acquired') throw new Error('it was not acquired');
  const by = acquired.term;
  await rig.advance(2_000);

  root.tree.changePolicies(offering(keptOnly));
  await rig.advance(2_000);
  for (let n = 1; n <= 6; n += 1) {
    await mustPush(lane, [anUpsert('e0', { cluster: 'kept', path: `root:kept${n}`, by })]);
    await rig.settle();
  }
  await mustPush(lane, aFullSync({}, objects(by), by));
  await rig.advance(10_000);

  t.like(heldAt(leaf), [{ removes: 105, objects: 120 }]);
  t.deepEqual(deletes, []);
});

for (const [what, narrow, late] of [
  ['some objects', keptOnly, 'end'],
  ['nothing of the slice', otherTypes, 'begin'],
] as const)
  test(`a policy that follows ${what} is reverted before the ${late} of its sync arrives: nothing is removed`, async (t) => {
    const { rig, leaf, deletes } = await aRootAndLeaf(t, { count: 160, kept: 10 });
    const release = delay(rig, late);

    leaf.tree.changePolicies(following(narrow));
    await rig.advance(3_000);
    leaf.tree.changePolicies(following(everything));
    release();
    await rig.advance(10_000);

    t.deepEqual(deletes, []);
    t.is(leaf.known.slice(exports)?.objects, 160);
    t.not(leaf.known.slice(exports)?.filterHash, '');
  });

test('a slice becomes current again if its end arrives under a policy that is reverted before the sender learns of it', async (t) => {
  const both = aPolicy({ types: ['*'], clusters: ['acme', 'kept'] });
  const more = aPolicy({ types: ['*'], clusters: ['acme', 'kept', 'new'] });
  const { rig, root, leaf, lane } = await aRootAndLeaf(t, { count: 160, kept: 10, follow: both });
  const release = delay(rig, 'end');
  root.tree.changePolicies(offering(more));
  await rig.advance(3_000);
  t.is(leaf.known.slice(exports)?.filterHash, '');
  const releasePolicies = delay(rig, 'policy', 'root');
  const flowing = deferred<void>();
  const parentEnd = rig.connections[0]?.[1];
  if (parentEnd === undefined) throw new Error('nobody connected');
  parentEnd.drained = () => flowing.promise;
  await mustPush(lane, [anUpsert('e0', { cluster: 'kept', path: 'root:kept' })]);
  await rig.settle();

  leaf.tree.changePolicies(following(everything));
  release();
  await rig.settle();
  leaf.tree.changePolicies(following(both));
  releasePolicies();
  await rig.settle();
  flowing.resolve();
  await rig.advance(60_000);

  t.is(leaf.known.slice(exports)?.objects, 160);
  t.not(leaf.known.slice(exports)?.filterHash, '');
});

test('objects that are not stored yet count among what a policy would remove', async (t) => {
  const { rig, root, leaf, lane, gate, deletes } = await aRootAndLeaf(t, { count: 99 });
  gate.shut();
  await mustPush(
    lane,
    Array.from({ length: 90 }, (_, i) => anUpsert(`more${i}`)),
  );
  await rig.settle();

  root.tree.changePolicies(offering(otherTypes));
  await rig.settle();
  gate.open();
  await rig.advance(10_000);

  t.like(heldAt(leaf), [{ removes: 189, objects: 189 }]);
  t.deepEqual(deletes, []);
  t.is(leaf.known.slice(exports)?.objects, 189);
});
