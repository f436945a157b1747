/**
 * One address for several caches of a tree, like a load balancer: each connection of a shard's
 * pusher reaches another cache. Finds a pusher that ends because of that, and a cache that misses
 * objects.
 */
import { test } from '../../support/test.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';
import { aModelShard } from '../crash/model-shard.js';
import { aProcessTree, type TreeCache } from '../../support/crash/process-tree.js';
import { converge } from '../crash/tree-model.js';

const moves = 6;

async function viaOf(cache: TreeCache, shard: string): Promise<string | null | undefined> {
  return (await cache.status()).shards.find((each) => each.shard === shard)?.via;
}

test.serial(
  'a pusher that a load balancer sends to another cache of the tree each time goes on there, and all caches get its objects',
  async (t) => {
    const tree = await aProcessTree(t);
    const root = await tree.start('root');
    const west = await tree.start('west', { parent: root });
    const east = await tree.start('east', { parent: root });
    const balancer = await TcpProxy.start(west.process.port);
    t.teardown(() => balancer.close());
    const amber = aModelShard(t, 'amber');
    amber.put('first');
    const pushing = amber.push(west, { port: balancer.port, caFile: tree.trustedFile });
    let hasEnded = false;
    void pushing.ended.then(() => (hasEnded = true));
    await converge(t, 'the beginning', { caches: [root, west, east], shards: [amber] });

    for (let move = 1; move <= moves; move += 1) {
      const to = [root, east, west][move % 3] ?? root;
      balancer.redirect(to.process.port);
      balancer.cut();
      amber.put(`moved-${move}`);
      await converge(t, `move ${move}, to ${to.name}`, { caches: [root, west, east], shards: [amber] });
      await until(async () => (await viaOf(to, 'amber')) === 'local');
      t.false(hasEnded, `move ${move}`);
    }
  },
);

test.serial('when a cache moves to another parent and back, all caches hold its objects, and their origin stays the same', async (t) => {
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const west = await tree.start('west', { parent: root });
  const east = await tree.start('east', { parent: root });
  const leaf = await tree.start('leaf', { parent: west });
  const [amber, birch] = [aModelShard(t, 'amber'), aModelShard(t, 'birch')];
  for (let i = 0; i < 50; i += 1) amber.put(`a${i}`);
  for (let i = 0; i < 50; i += 1) birch.put(`b${i}`);
  amber.push(leaf);
  birch.push(east);
  const caches = [root, west, east, leaf];
  await converge(t, 'the beginning', { caches, shards: [amber, birch] });

  for (const [parent, other] of [
    [east, west],
    [west, east],
  ] as const) {
    leaf.uplink.redirect(parent.process.port);
    leaf.uplink.cut();
    amber.put(`below-${parent.name}`);
    birch.put(`above-${parent.name}`);
    await converge(t, `below ${parent.name}`, { caches, shards: [amber, birch] });
    t.is(await viaOf(parent, 'amber'), 'child/leaf');
    t.is(await viaOf(other, 'amber'), 'parent');
    t.is(await viaOf(leaf, 'amber'), 'local');
  }
});
