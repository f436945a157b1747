/**
 * A tree of four caches (F9 to F17 together). Shards push to random caches and move to others;
 * caches are killed, frozen and cut off; the policy between two of them is rewritten. Finds a cache
 * that does not hold what it should in the end, and a difference between digests of a link.
 * TEST_SEED=n repeats the choices of a run, but not its timing.
 *
 *        root
 *        ╱  ╲          the region sends up everything, or only public objects
 *   region   west
 *      │
 *    east
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';
import { aModelShard, modelTypes, type ModelShard, type Pushing } from '../crash/model-shard.js';
import { anOnlooker } from './onlooker.js';
import { seeded, type Random } from '../../support/crash/random.js';
import { aProcessTree, type TreeCache, type ProcessTree } from '../../support/crash/process-tree.js';
import { converge, digestsOf, type Reaches } from '../crash/tree-model.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const rounds = Number(process.env['TEST_KILLS'] ?? 7);
const everything = "[{types: ['*']}]";
const onlyPublic = "[{types: ['*'], labels: 'public=true'}]";

type PlainWrites = { readonly shard: ModelShard; cache: TreeCache; pushing: Pushing };
type Stage = Readonly<{
  tree: ProcessTree;
  random: Random;
  root: TreeCache;
  region: TreeCache;
  east: TreeCache;
  west: TreeCache;
  caches: readonly TreeCache[];
  origins: readonly PlainWrites[];
  policy: { isOpen: boolean };
  backedUp: Set<TreeCache>;
  /** Senders that lost their shard to another one; each must end by itself. */
  fenced: Pushing[];
}>;

test('whatever happens to a tree, in the end every cache holds what it should', async (t) => {
  t.timeout(60_000 + rounds * 25_000);
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const region = await tree.start('region', { parent: root });
  const east = await tree.start('east', { parent: region });
  const west = await tree.start('west', { parent: root });
  const origins = ['amber', 'birch', 'cedar'].map((name, i): PlainWrites => {
    const [shard, cache] = [aModelShard(t, name), [east, west, region][i]!];
    return { shard, cache, pushing: shard.push(cache) };
  });
  const stage: Stage = {
    tree,
    random,
    root,
    region,
    east,
    west,
    caches: tree.caches,
    origins,
    policy: { isOpen: true },
    backedUp: new Set(),
    fenced: [],
  };
  const shards = origins.map(({ shard }) => shard);
  const wanted = { caches: tree.caches, shards, reaches: reachesIn(stage) };
  for (const shard of shards) for (let i = 0; i < 40; i += 1) shard.put(`n${i}`);
  await converge(t, 'the beginning', wanted);

  const done: string[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const churning = new AbortController();
    const churn = change(stage, churning.signal);
    await sleep(random.below(300));
    const [what, happen] = mishaps[random.below(mishaps.length)]!;
    done.push(what);
    await happen(stage);
    await sleep(random.below(200));
    churning.abort();
    await churn;
    if (round % 6 === 0 && round < rounds) {
      heal(stage);
      await converge(t, `TEST_SEED=${seed}, round ${round}: ${done.join(', ')}`, wanted);
    }
  }

  await region.forwards(everything);
  stage.policy.isOpen = true;
  heal(stage);
  await converge(t, `TEST_SEED=${seed}, the end: ${done.join(', ')}`, wanted);
  for (const pushing of stage.fenced) t.is((await pushing.ended).kind, 'refused');
  const onlooker = await anOnlooker(t, west);
  for (const shard of shards) shard.put('last');
  await until(() => onlooker.of('last').length === shards.length);
  await converge(t, `TEST_SEED=${seed}, the last of it`, wanted);
  const digests = await digestsOf(root);
  for (const cache of tree.caches) {
    t.deepEqual(await digestsOf(cache), digests, cache.name);
    t.is(await cache.metric('strata_link_digest_differences_total'), 0, cache.name);
    t.notRegex(await cache.process.log(), /"level":"error"/, cache.name);
  }
});

const mishaps: readonly (readonly [string, (stage: Stage) => Promise<void>])[] = [
  ['a cache is killed', ({ random, caches }) => caches[random.below(caches.length)]!.process.restart('SIGKILL')],
  ['a cache is stopped', ({ random, caches }) => caches[random.below(caches.length)]!.process.restart('SIGTERM')],
  ['links are cut', async ({ caches }) => caches.forEach(({ uplink }) => uplink.cut())],
  ['a link is silent', async ({ random, region, east, west }) => [region, east, west][random.below(3)]!.uplink.blackhole()],
  [
    'a link is half-open',
    async ({ random, region, east, west }) => [region, east, west][random.below(3)]!.uplink.blackhole(random.chance(0.5) ? 'up' : 'down'),
  ],
  ['a link is slow', async ({ random, region, east, west }) => [region, east, west][random.below(3)]!.uplink.delay(random.below(200))],
  ['links are healed', async (stage) => heal(stage)],
  [
    'a cache is frozen',
    async ({ random, caches }) => {
      const cache = caches[random.below(caches.length)]!;
      await cache.freeze();
      await sleep(random.below(3_000));
      cache.thaw();
    },
  ],
  [
    'a cache loses its disk',
    async ({ tree, random, caches }) => {
      const cache = caches[random.below(caches.length)]!;
      await cache.loseDisk();
      await cache.process.resume();
      await tree.trustAll();
    },
  ],
  [
    'a cache is backed up, or given that disk back',
    async ({ tree, random, caches, backedUp }) => {
      const cache = caches[random.below(caches.length)]!;
      if (!backedUp.delete(cache)) {
        backedUp.add(cache);
        return cache.backUp();
      }
      await cache.restore();
      await cache.process.resume();
      await tree.trustAll();
    },
  ],
  [
    'a policy is rewritten',
    async ({ policy, region }) => {
      policy.isOpen = !policy.isOpen;
      await region.forwards(policy.isOpen ? everything : onlyPublic);
    },
  ],
  ['a shard moves', async (stage) => move(stage, false)],
  ['a shard moves, and its old process goes on', async (stage) => move(stage, true)],
];

/**
 * Moves a shard to another cache. `goesOn`: its old process goes on, until the tree learns of the
 * later one and fences it.
 */
async function move({ random, caches, origins, fenced }: Stage, goesOn: boolean): Promise<void> {
  const plainWrites = origins[random.below(origins.length)]!;
  if (goesOn) fenced.push(plainWrites.pushing);
  else await plainWrites.pushing.stop();
  plainWrites.cache = caches[random.below(caches.length)]!;
  plainWrites.pushing = plainWrites.shard.push(plainWrites.cache);
}

function heal({ caches }: Stage): void {
  for (const { uplink } of caches) uplink.heal();
}

async function change({ random, origins }: Stage, signal: AbortSignal): Promise<void> {
  for (let turn = Date.now(); !signal.aborted; turn += 1) {
    const { shard } = origins[random.below(origins.length)]!;
    const type = modelTypes[random.below(modelTypes.length)]!;
    const name = `n${random.below(60)}`;
    if (random.chance(0.3)) shard.delete(name, type);
    else shard.put(name, { type, turn, isPublic: random.chance(0.6), bytes: random.below(2_000) });
    await sleep(random.below(6));
  }
}

/** Only the link between the region and the root filters, and only upwards. */
function reachesIn({ origins, region, east, policy }: Stage): Reaches {
  const below = new Set([region, east]);
  return ({ isPublic }, shard, cache) => {
    const isFromBelow = origins.some((plainWrites) => plainWrites.shard === shard && below.has(plainWrites.cache));
    return policy.isOpen || isPublic || !isFromBelow || below.has(cache);
  };
}
