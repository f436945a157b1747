/**
 * A cache stops accepting a type while its link is down and a sync of that type is unfinished. The
 * tests would find objects that stay for ever.
 */
import { test } from '../../support/test.js';
import type { LinkPolicies } from '../../../src/domain/link-policies.js';
import { aPolicy } from '../../support/link-rules.js';
import { aClaim, aFullSync, aSlice, mustPush } from '../../support/pushes.js';
import { anUpsert } from './an-upsert.js';
import { TreeRig, type RigCache } from './tree-rig.js';

const exports = aSlice();
const everything = aPolicy({ types: ['*'] });
const noExports = aPolicy({ types: ['apiresourceschemas.apis.kcp.io'] });
const objects = 20;
const waitMs = 5_000;

/** The policies of a cache with children; `below`: those of a child. */
function above({
  accept = aPolicy({ shards: ['*'] }),
  offer = everything,
}: Partial<Record<'accept' | 'offer', typeof everything>> = {}): LinkPolicies {
  return { forward: everything, follow: everything, children: new Map([['*', { accept, offer }]]) };
}

function below({ follow = everything, forward = everything }: Partial<Record<'follow' | 'forward', typeof everything>> = {}): LinkPolicies {
  return { forward, follow, children: new Map() };
}

async function pushTo(cache: RigCache): Promise<void> {
  const upserts = Array.from({ length: objects }, (_, i) => anUpsert(`e${i}`));
  await mustPush(cache.store.writer.lane(), [aClaim({ origin: cache.store.cacheId }), ...aFullSync({}, upserts)]);
}

/** Drops every frame after the next begin to that end of the first connection. */
function stopBehindBegin(rig: TreeRig, end: 0 | 1): void {
  const receiving = rig.connections[0]?.[end];
  if (receiving === undefined) throw new Error('nobody is connected');
  const receive = receiving.receive.bind(receiving);
  let isStopped = false;
  receiving.receive = (frame) => {
    if (!isStopped) receive(frame);
    if (frame.kind === 'begin') isStopped = true;
  };
}

test('objects that a child no longer follows are removed when it starts again, even if a sync of them was unfinished', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root', { policies: above() });
  const leaf = await rig.cache('leaf', { urls: ['root'], policies: below() });
  await pushTo(root);
  await rig.advance(waitMs);
  stopBehindBegin(rig, 0);
  root.tree.changePolicies(above({ offer: aPolicy({ types: ['*'], clusters: ['acme'] }) }));
  await rig.settle();
  t.like(leaf.known.slice(exports), { objects, filterHash: '' });
  leaf.stop();
  await rig.advance(waitMs);

  const again = await rig.cache('leaf', { urls: ['root'], policies: below({ follow: noExports }), disk: leaf.disk });
  await rig.advance(waitMs);

  t.is(again.known.slice(exports)?.objects ?? 0, 0);
});

test('objects that a parent no longer accepts are removed when its child is back, even if a sync of them was unfinished', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root', { policies: above() });
  const leaf = await rig.cache('leaf', { urls: ['root'], policies: below() });
  await pushTo(leaf);
  await rig.advance(waitMs);
  stopBehindBegin(rig, 1);
  leaf.tree.changePolicies(below({ forward: aPolicy({ types: ['*'], clusters: ['acme'] }) }));
  await rig.settle();
  t.like(root.known.slice(exports), { objects, filterHash: '' });
  leaf.stop();
  root.tree.changePolicies(above({ accept: aPolicy({ types: ['apiresourceschemas.apis.kcp.io'], shards: ['*'] }) }));
  await rig.advance(waitMs);
  t.is(root.known.slice(exports)?.objects, objects);

  await rig.cache('leaf', { urls: ['root'], policies: below(), disk: leaf.disk });
  await rig.advance(waitMs);

  t.is(root.known.slice(exports)?.objects ?? 0, 0);
});

test('objects that came another way stay, even if the link by which their shard comes now does not accept them', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root', {
    policies: above({ accept: aPolicy({ types: ['apiresourceschemas.apis.kcp.io'], shards: ['*'] }) }),
  });
  await mustPush(root.store.writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert('one')])]);

  const leaf = await rig.cache('leaf', { urls: ['root'], policies: below() });
  await mustPush(leaf.store.writer.lane(), [aClaim({ origin: leaf.store.cacheId, term: 2_000 })]);
  await rig.advance(waitMs);

  t.is(root.known.shard(exports.shard)?.via, 'child/leaf');
  t.is(root.known.slice(exports)?.objects, 1);
});
