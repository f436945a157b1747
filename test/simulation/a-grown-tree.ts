/** The tree, and the builders of its parts, that most simulated cases use. */
import { shardName } from '../support/objects.js';
import type { ModelCache } from './model-tree.js';
import type { ModelRule } from './model-rule.js';
import { aSimObject, simResources } from './sim-objects.js';
import type { SimCacheOptions } from './sim-cache.js';
import { SimPusher } from './sim-pusher.js';
import { SimTree } from './sim-tree.js';
import { SimWorld } from './sim-world.js';

export const everything: readonly ModelRule[] = [{ types: ['*'] }];

function aCache(name: string, parent?: string, policies: Partial<ModelCache> = {}): ModelCache {
  return {
    name,
    parent,
    forward: everything,
    follow: everything,
    children: { '*': { accept: everything, offer: everything } },
    ...policies,
  };
}

export function aPusher(shard: string, objects = 3, process = 'process-1'): SimPusher {
  const pusher = new SimPusher({ shard: shardName(shard), process, resources: simResources });
  for (let count = 0; count < objects; count += 1) pusher.put(aSimObject({ shard, name: `one-${count}` }));
  return pusher;
}

/**
 * Two regions under one root, one of them with a cache below it. The pusher of amber connects to
 * that lowest cache, the pusher of birch to the other region.
 */
export async function aGrownTree(
  policies: Readonly<Record<string, Partial<ModelCache>>> = {},
  { seed = 1, ...options }: SimCacheOptions & Readonly<{ seed?: number }> = {},
) {
  const world = new SimWorld(seed);
  const caches = [
    aCache('root', undefined, policies['root']),
    aCache('eu', 'root', policies['eu']),
    aCache('us', 'root', policies['us']),
    aCache('eu-1', 'eu', policies['eu-1']),
  ];
  const tree = new SimTree(world, caches, options);
  const [amber, birch] = [aPusher('amber'), aPusher('birch')];
  await tree.start();
  tree.plainWrites(amber, 'eu-1');
  tree.plainWrites(birch, 'us');
  const tookMs = await tree.converge(60_000);
  return { world, tree, amber, birch, tookMs };
}
