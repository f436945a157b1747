/**
 * A chain of three caches with a shard at each, one of which loses its disk or gets an older one
 * (F17). Finds a cache that does not get everything back, a neighbour that loses objects, and a
 * deleted object that stays.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';
import { aModelShard, type ModelShard } from '../crash/model-shard.js';
import { anOnlooker } from './onlooker.js';
import { aProcessTree, type TreeCache, type ProcessTree } from '../../support/crash/process-tree.js';
import { converge, digestsOf } from '../crash/tree-model.js';

const objects = 200;

type Chain = Readonly<{ tree: ProcessTree; caches: readonly TreeCache[]; shards: readonly ModelShard[] }>;

async function aChain(t: ExecutionContext): Promise<Chain> {
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const region = await tree.start('region', { parent: root });
  const leaf = await tree.start('leaf', { parent: region });
  const caches = [root, region, leaf];
  const shards = ['amber', 'birch', 'cedar'].map((name) => aModelShard(t, name));
  shards.forEach((shard, i) => {
    for (let at = 0; at < objects; at += 1) shard.put(`${shard.name}-${at}`);
    shard.push(caches[i]!);
  });
  await converge(t, 'the beginning', { caches, shards });
  return { tree, caches, shards };
}

/** Creates one object of every shard, changes one and deletes one. */
function change(shards: readonly ModelShard[], round: number): void {
  for (const shard of shards) {
    shard.put(`${shard.name}-new-${round}`);
    shard.put(`${shard.name}-0`, { turn: round });
    shard.delete(`${shard.name}-${round}`);
  }
}

async function allHoldTheSame(t: ExecutionContext, { caches }: Chain): Promise<void> {
  const [digests, ...others] = await Promise.all(caches.map(digestsOf));
  for (const [i, other] of others.entries()) t.deepEqual(other, digests, caches[i + 1]!.name);
  for (const cache of caches) t.is(await cache.metric('strata_link_digest_differences_total'), 0, cache.name);
}

test.serial('whichever cache of a chain loses its disk receives everything again, and its neighbours lose nothing', async (t) => {
  const chain = await aChain(t);
  const { tree, caches, shards } = chain;

  for (const [i, victim] of caches.entries()) {
    const round = i + 1;
    const others = caches.filter((cache) => cache !== victim);
    const onlookers = await Promise.all(others.map((cache) => anOnlooker(t, cache)));
    await victim.loseDisk();
    change(shards, round);
    await victim.process.resume();
    await tree.trustAll();
    await converge(t, `${victim.name} lost its disk`, { caches, shards });
    for (const shard of shards) shard.put(`${shard.name}-last-${round}`);

    for (const [at, onlooker] of onlookers.entries()) {
      for (const { name } of shards) await until(() => onlooker.of(`${name}-last-${round}`).length === 1);
      const gone = onlooker.seen.filter(({ type }) => type === 'DELETED').map(({ name }) => name);
      t.deepEqual(
        gone.toSorted(),
        shards.map(({ name }) => `${name}-${round}`).toSorted(),
        `${others[at]!.name} while ${victim.name} was away`,
      );
      t.is(onlooker.seen.filter(({ type }) => type !== 'DELETED').length, 3 * shards.length);
      await onlooker.close();
    }
  }

  await converge(t, 'the end', { caches, shards });
  await allHoldTheSame(t, chain);
});

test.serial('whichever cache of a chain gets an older disk ends up with the present objects, and its neighbours lose none', async (t) => {
  const chain = await aChain(t);
  const { tree, caches, shards } = chain;

  for (const [i, victim] of caches.entries()) {
    const round = i + 1;
    await victim.backUp();
    change(shards, round);
    await converge(t, `${victim.name} is backed up, and things go on`, { caches, shards });
    const onlookers = await Promise.all(caches.filter((cache) => cache !== victim).map((cache) => anOnlooker(t, cache)));
    await victim.restore();
    for (const shard of shards) shard.put(`${shard.name}-0`, { turn: 10 + round });
    await victim.process.resume();
    await tree.trustAll();
    await converge(t, `${victim.name} is restored`, { caches, shards });
    for (const shard of shards) shard.put(`${shard.name}-last-${round}`);

    t.regex(await victim.process.log(), /store\.rolled-back/);
    for (const onlooker of onlookers) {
      for (const { name } of shards) await until(() => onlooker.of(`${name}-last-${round}`).length === 1);
      const wrong = onlooker.seen.filter(
        ({ type, name }) => type === 'DELETED' && shards.some((shard) => shard.objects.some((object) => object.name === name)),
      );
      t.deepEqual(wrong, [], `while ${victim.name} was restored`);
      await onlooker.close();
    }
  }

  await converge(t, 'the end', { caches, shards });
  await allHoldTheSame(t, chain);
});
