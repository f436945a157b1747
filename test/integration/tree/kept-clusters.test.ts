/**
 * A pusher that cannot read a logical cluster ends its slice without it: caches elsewhere in the
 * tree must keep the objects of that cluster.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { clusterName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { pushedExport, RawPusher } from '../../support/raw-pusher.js';
import { aTree, eventsOf, holds } from '../../support/test-tree.js';

/**
 * A tree that has the shard, and a new cache `west`. The pusher moves to `west` while it cannot
 * read the logical cluster bold.
 */
async function moved(t: ExecutionContext, options: Readonly<{ config?: string }> = {}) {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  const far = await tree.cache('far', { parent: root });
  const slice = aSlice();
  const one = await RawPusher.open(east, { term: 1_000, process: 'p' });
  await one.syncWhole(slice, [pushedExport('a', { cluster: 'acme' }), pushedExport('b', { cluster: 'bold' })]);
  for (const cache of [root, far]) await holds(t, cache, 'a,b');
  const seen = await eventsOf(t, far);
  one.socket.terminate();
  await east.stop();

  const west = await tree.cache('west', { parent: root, ...options });
  const two = await RawPusher.open(west, { term: 1_001, process: 'p', takesOver: true });
  two.begin(slice);
  two.put(slice, [pushedExport('a', { cluster: 'acme' })]);
  two.numbered((sequence) => ({ kind: 'clusterKeep', sequence, slice, cluster: clusterName('bold') }));
  await two.acknowledged(two.end(slice, 1));
  return { root, far, west, two, slice, seen };
}

const followsNothing = `
parent:
  forward: [{types: ['*']}]
  follow: []
children:
  '*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}
`;

for (const [title, options] of [
  ['empty', {}],
  ['empty, and follows nothing', { config: followsNothing }],
] as const)
  test(`a cache that is ${title}, removes nothing above when a slice ends without one of its logical clusters`, async (t) => {
    const { root, far, two, slice, seen } = await moved(t, options);
    await sleep(3_000);
    for (const cache of [root, far]) await holds(t, cache, 'a,b');
    t.deepEqual(seen(), []);

    two.numbered((sequence) => ({ kind: 'clusterBegin', sequence, slice, cluster: clusterName('bold') }));
    await two.acknowledged(two.numbered((sequence) => ({ kind: 'clusterEnd', sequence, slice, cluster: clusterName('bold'), count: 0 })));
    for (const cache of [root, far]) await holds(t, cache, 'a');
    t.deepEqual(seen(), ['DELETED b']);
  });
