import test from 'ava';
import fc from 'fast-check';
import type { FreshnessCheck, LieKind } from './freshness-check.js';
import { play, randomTree, Tally } from './random-tree.js';

/** TEST_TREES: how many to try; TEST_SEED: the seed that a failure told; TEST_REQUIRE: what is required beside what the code holds, such as `freshness,absence`. */
const { TEST_TREES: trees = '40', TEST_SEED: seed, TEST_REQUIRE: asked = '' } = process.env;
const runs = { numRuns: Number(trees), includeErrorInReport: true, ...(seed === undefined ? {} : { seed: Number(seed) }) };

/** What the code does not hold in every state of a troubled tree, and why (tree-lies.test.ts has the smallest cases). Whoever mends it takes it out here. */
const lacking = new Map<LieKind, string>([
  [
    'freshness',
    'T5: a status overtakes the changes it is about, and a link that is silent counts as there for as long as its ends have patience',
  ],
  ['absence', 'T6: `synced` of a type means that it was whole once, and knows neither of refused objects nor of links that are down'],
]);
const kinds: readonly LieKind[] = ['freshness', 'absence'];
const required = kinds.filter((kind) => !lacking.has(kind) || asked.split(',').includes(kind));

test('whatever happens to a tree, once it is healed every cache holds what the model says', async (t) => {
  const tally = new Tally();
  const found = new Map<LieKind, number>();

  await fc.assert(
    fc.asyncProperty(randomTree({ isTroubled: true }), async (tree) => {
      const { check } = await play(tree, tally);
      for (const kind of kinds) if (check.count(kind) > 0) found.set(kind, (found.get(kind) ?? 0) + 1);
      demand(check, required);
    }),
    runs,
  );

  t.log(String(tally));
  for (const [kind, why] of lacking)
    t.log(`${kind} was better than the truth in ${found.get(kind) ?? 0} trees, which is not required yet: ${why}`);
  t.pass();
});

test('without trouble a change crosses an edge once, none goes back where it came from, nothing is logged, and no cache says more than is true', async (t) => {
  const tally = new Tally();

  await fc.assert(
    fc.asyncProperty(randomTree({ isTroubled: false }), async (tree) => {
      const { world, crossings, check } = await play(tree, tally);
      const warned = [...world.warnings].map(([event, { last }]) => `${event}: ${last}`);
      if (crossings.echoes.length + warned.length > 0) throw new Error([...crossings.echoes, ...warned].join('\n'));
      demand(check, kinds);
    }),
    runs,
  );

  t.log(String(tally));
  t.pass();
});

function demand(check: FreshnessCheck, demanded: readonly LieKind[]): void {
  const lies = demanded.flatMap((kind) => check.lies(kind));
  if (lies.length > 0) throw new Error(lies.join('\n'));
}
