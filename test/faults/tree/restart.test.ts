/**
 * Kills caches of a tree in the middle of a large sync (F15). Finds an object that is removed only
 * because its sync was cut short, and a cache that is ready before it has everything. Also finds
 * caches that differ in the end. TEST_SEED=n repeats the choices of a run, but not its timing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';
import { aModelShard, modelTypes, type ModelShard } from '../crash/model-shard.js';
import { anOnlooker } from './onlooker.js';
import { seeded } from '../../support/crash/random.js';
import { aProcessTree, type TreeCache } from '../../support/crash/process-tree.js';
import { converge, differences, digestsOf } from '../crash/tree-model.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const kills = 4;
const many = 4_000;

test.serial('a child that is killed in its first sync, or whose parent is, is not ready before it has everything', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const west = await tree.start('west', { parent: root, flags: ['--parent-ready-grace=5m'] });
  const shards = [aModelShard(t, 'amber'), aModelShard(t, 'birch')];
  for (const shard of shards) {
    for (let i = 0; i < many; i += 1) shard.put(`n${i}`, { bytes: 1_000 });
    for (let i = 0; i < many / 4; i += 1) shard.put(`w${i}`, { type: modelTypes[1], bytes: 1_000 });
    shard.push(root);
  }
  await converge(t, 'the parent', { caches: [root], shards });
  await west.loseDisk();

  for (let kill = 1; kill <= kills; kill += 1) {
    const watching = new AbortController();
    const early = readyTooEarly(west, shards, watching.signal);
    const resuming = west.process.resume().catch(() => {});
    await sleep(500 + random.below(1_500));
    const victim = random.chance(0.7) ? west : root;
    if (victim === root) await root.process.restart('SIGKILL');
    await west.process.kill();
    await resuming;
    watching.abort();
    t.deepEqual(await early, [], `kill ${kill}, of ${victim.name}`);
  }
  await west.process.resume();
  await converge(t, 'the end', { caches: [root, west], shards });

  t.deepEqual(await digestsOf(west), await digestsOf(root));
});

test.serial('a child that was killed while one type was whole and another was not is not ready when it comes back', async (t) => {
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const west = await tree.start('west', { parent: root, flags: ['--parent-ready-grace=5m'] });
  const amber = aModelShard(t, 'amber');
  for (let i = 0; i < many; i += 1) amber.put(`n${i}`, { bytes: 1_000 });
  amber.put('small', { type: modelTypes[1] });
  amber.push(root);
  await converge(t, 'the parent', { caches: [root], shards: [amber] });
  await west.loseDisk();
  west.uplink.delay(400);
  const resuming = west.process.resume().catch(() => {});
  await until(async () => (await wholeTypes(west).catch(() => [])).length > 0, 20_000);
  t.deepEqual(await wholeTypes(west), [modelTypes[1].resource]);
  await west.process.kill();
  await resuming;

  west.uplink.blackhole();
  const again = west.process.resume().catch(() => {});
  await until(async () => (await wholeTypes(west).catch(() => [])).length > 0, 20_000);
  const { status } = await west.client.raw('GET', '/readyz');
  west.uplink.heal();
  await again;

  t.is(status, 500);
  await converge(t, 'the end', { caches: [root, west], shards: [amber] });
});

test.serial(
  'whichever cache is killed during a resync, objects that the resync lacks are removed once, after its end, and no other object is',
  async (t) => {
    t.log(`TEST_SEED=${seed}`);
    const random = seeded(seed);
    const tree = await aProcessTree(t);
    const root = await tree.start('root');
    const west = await tree.start('west', { parent: root });
    const amber = aModelShard(t, 'amber');
    const wanted = { caches: [root, west], shards: [amber] };
    for (let i = 0; i < many; i += 1) amber.put(`n${i}`, { bytes: 1_000 });
    amber.push(root);
    await converge(t, 'the beginning', wanted);
    const onlooker = await anOnlooker(t, west);
    await west.process.kill();
    await root.process.kill();
    for (let i = 0; i < many; i += 1) {
      if (i % 20 === 3) amber.delete(`n${i}`);
      if (i % 20 === 4) amber.put(`n${i}`, { turn: 1, bytes: 1_000 });
    }
    // On another disk of the parent the child's position means nothing.
    await root.loseDisk();
    await root.process.resume();
    await tree.trustAll();

    for (let kill = 1; kill <= kills; kill += 1) {
      await west.process.resume();
      await sleep(random.below(1_200));
      if (random.chance(0.5)) await root.process.restart('SIGKILL');
      await west.process.kill();
    }
    await west.process.resume();
    await converge(t, 'the end', wanted);
    amber.put('last');
    await until(() => onlooker.of('last').length === 1);

    t.is(onlooker.relists, 0);
    const stories = Array.from({ length: many }, (_, i) => onlooker.of(`n${i}`).join());
    t.deepEqual(
      stories,
      stories.map((_, i) => (i % 20 === 3 ? 'DELETED 0' : i % 20 === 4 ? 'MODIFIED 1' : '')),
    );
  },
);

/** The types that the cache has ever synced as a whole. */
async function wholeTypes(cache: TreeCache): Promise<readonly string[]> {
  const { shards } = await cache.status();
  return shards.flatMap(({ slices }) => slices.filter(({ everSynced }) => everSynced).map(({ resource }) => resource));
}

/** Polls the cache until `signal`; resolves with what it lacked while it was ready. */
async function readyTooEarly(cache: TreeCache, shards: readonly ModelShard[], signal: AbortSignal): Promise<readonly string[]> {
  const early: string[] = [];
  while (!signal.aborted && early.length === 0) {
    const { status } = await cache.client.raw('GET', '/readyz').catch(() => ({ status: 0 }));
    const missing = status === 200 ? await differences(cache, { caches: [cache], shards }).catch(() => []) : [];
    early.push(...missing.slice(0, 3));
    await sleep(10);
  }
  return early;
}
