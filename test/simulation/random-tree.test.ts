import { rounds } from '../support/sizes.js';
import { test } from '../support/test.js';
import fc from 'fast-check';
import type { FreshnessCheck, LieKind } from './freshness-check.js';
import { play, randomTree, Tally } from './random-tree.js';
import type { TreeStep } from './tree-step.js';

/** TEST_TREES: how many trees to try. TEST_SEED: the seed that a failure printed. */
const { TEST_TREES: trees = rounds(12), TEST_SEED: seed } = process.env;
const runs = { numRuns: Number(trees), includeErrorInReport: true, ...(seed === undefined ? {} : { seed: Number(seed) }) };

const kinds: readonly LieKind[] = ['freshness', 'absence'];

test('whatever happens to a tree, every cache holds what the model says once the tree is healed', async (t) => {
  const tally = new Tally();

  await fc.assert(
    fc.asyncProperty(randomTree({ isTroubled: true }), async (tree) => {
      const { check } = await play(tree, tally);
      demand(check, losesDisks(tree.steps) ? ['freshness'] : kinds);
    }),
    runs,
  );

  t.log(String(tally));
  t.pass();
});

test('without trouble a change crosses each link once and never back, nothing is logged, and no cache reports more than is true', async (t) => {
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

/**
 * If a disk is lost, perhaps no cache is left that knows a shard whose pusher is away
 * (tree-lies.test.ts).
 */
function losesDisks(steps: readonly TreeStep[]): boolean {
  return steps.some((step) => step.kind === 'wipe' || step.kind === 'restore' || (step.kind === 'crash' && !step.isKept));
}

function demand(check: FreshnessCheck, demanded: readonly LieKind[]): void {
  const lies = demanded.flatMap((kind) => check.lies(kind));
  if (lies.length > 0) throw new Error(lies.join('\n'));
}
