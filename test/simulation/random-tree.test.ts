import test from 'ava';
import fc from 'fast-check';
import { Crossings } from './crossings.js';
import type { ModelCache } from './model-tree.js';
import { SimTree } from './sim-tree.js';
import { SimWorld } from './sim-world.js';
import { scriptPolicies, TreeScript, type TreeStep } from './tree-script.js';

const number = fc.nat({ max: 11 });
const cacheStep = (...kinds: readonly Extract<TreeStep, { cache: number }>['kind'][]) =>
  fc.record({ kind: fc.constantFrom(...kinds), cache: number });

const pass: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('pass'), ms: fc.constantFrom(1, 15, 50, 400, 5_000, 30_000, 700_000) });
const put: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('put'),
  shard: number,
  object: number,
  isPublic: fc.boolean(),
  content: number,
});
const remove: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('remove'), shard: number, object: number });
const broken = cacheStep('partition', 'heal', 'cut', 'deaf', 'mute') as fc.Arbitrary<TreeStep>;
const crash: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('crash'), cache: number, isKept: fc.boolean(), isTold: fc.boolean() });
const operation = cacheStep('stop', 'start', 'start', 'wipe', 'backup', 'restore', 'freeze', 'thaw', 'compact') as fc.Arbitrary<TreeStep>;
const policy: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('policy'),
  cache: number,
  forward: number,
  follow: number,
  accept: number,
  offer: number,
});
const rehome: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('rehome'),
  shard: number,
  cache: number,
  objects: fc.nat({ max: 8 }),
});
const reparent: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('reparent'), cache: number, parent: number });

/** Each cache follows one before it. */
const parents = fc.array(number, { minLength: 1, maxLength: 4 });

function caches(follows: readonly number[]): readonly ModelCache[] {
  const root: ModelCache = { name: 'cache-0', parent: undefined, ...scriptPolicies(0, 0, 0, 0) };
  return [
    root,
    ...follows.map((above, index): ModelCache => ({ ...root, name: `cache-${index + 1}`, parent: `cache-${above % (index + 1)}` })),
  ];
}

const begin: readonly TreeStep[] = [0, 1, 2].map((shard) => ({ kind: 'rehome', shard, cache: shard * 2 + 1, objects: 6 }));

async function play(seed: number, follows: readonly number[], steps: readonly TreeStep[]) {
  const world = new SimWorld(seed);
  const crossings = new Crossings(world.network);
  const tree = new SimTree(world, caches(follows));
  const script = new TreeScript(world, tree);
  await tree.start();
  await script.run([...begin, ...steps]);
  await script.heal();
  await tree.converge(1_800_000);
  return { world, tree, crossings };
}

/** STRATA_TREES: how many to try; STRATA_SEED: the seed that a failure told. */
const { STRATA_TREES: trees = '12', STRATA_SEED: seed } = process.env;
const runs = { numRuns: Number(trees), includeErrorInReport: true, ...(seed === undefined ? {} : { seed: Number(seed) }) };

test('whatever happens to a tree, once it is healed every cache holds what the model says', async (t) => {
  const step = fc.oneof(
    { weight: 5, arbitrary: pass },
    { weight: 5, arbitrary: put },
    { weight: 2, arbitrary: remove },
    { weight: 3, arbitrary: broken },
    { weight: 2, arbitrary: crash },
    { weight: 5, arbitrary: operation },
    { weight: 2, arbitrary: policy },
    { weight: 2, arbitrary: rehome },
    { weight: 1, arbitrary: reparent },
  );

  await fc.assert(
    fc.asyncProperty(fc.nat(), parents, fc.array(step, { maxLength: 60, size: 'max' }), async (drawn, follows, steps) => {
      const { world } = await play(drawn, follows, steps);
      t.deepEqual(world.faults, []);
      t.is(world.warnings.get('link.digest-differs'), undefined);
    }),
    runs,
  );
});

test('without trouble a change crosses an edge once each way at most, and nothing is logged', async (t) => {
  const steps = fc.array(fc.oneof(pass, put, remove), { maxLength: 40, size: 'max' });

  await fc.assert(
    fc.asyncProperty(fc.nat(), parents, steps, async (drawn, follows, script) => {
      const { world, crossings } = await play(drawn, follows, script);
      t.deepEqual(crossings.repeats, []);
      t.true(crossings.objects > 0);
      t.deepEqual([...world.warnings.keys()], []);
    }),
    runs,
  );
});
