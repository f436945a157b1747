/**
 * Generates random trees and scripts from a seed, plays them, and checks them against the model and
 * the rules of every run.
 */
import fc from 'fast-check';
import { Crossings } from './crossings.js';
import { FreshnessCheck } from './freshness-check.js';
import type { ModelCache } from './model-tree.js';
import { aScriptPolicy } from './script-policy.js';
import { SimTree } from './sim-tree.js';
import { SimWorld } from './sim-world.js';
import { TreeScript } from './tree-script.js';
import type { CacheStepKind, TreeStep } from './tree-step.js';

const convergeMaxMs = 1_800_000;
const millisecondsPerHour = 3_600_000;
const stepsMax = 60;

const number = fc.nat({ max: 23 });
const shard = fc.nat({ max: 3 });
const cacheStep = (...kinds: readonly CacheStepKind[]): fc.Arbitrary<TreeStep> =>
  fc.record({ kind: fc.constantFrom(...kinds), cache: number });

const pass: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('pass'), ms: fc.constantFrom(1, 15, 50, 400, 5_000, 30_000, 700_000) });
const put: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('put'), shard, object: number, isPublic: fc.boolean(), content: number });
const remove: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('remove'), shard, object: number });
const write: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('write'), object: number, isPublic: fc.boolean(), content: number });
const unwrite: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('unwrite'), object: number });
const path: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('path'), shard, cluster: number, path: number });
const declare: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('declare'), shard, isDeclared: fc.boolean() });
const crash: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('crash'),
  cache: number,
  isKept: fc.boolean(),
  isNoticed: fc.boolean(),
});
const start: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('start'), cache: number, skew: number });
const tamper: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('tamper'),
  cache: number,
  isUp: fc.boolean(),
  how: fc.constantFrom('dropped', 'doubled', 'swapped'),
});
const policy: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('policy'),
  cache: number,
  forward: number,
  follow: number,
  accept: number,
  offer: number,
});
const moveOrigin: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('moveOrigin'),
  shard,
  cache: number,
  objects: fc.nat({ max: 8 }),
});
const clear: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('clear'), shard, cache: number });
const reparent: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constantFrom('reparent', 'misparent'), cache: number, parent: number });

const flow: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('flow'),
  shard,
  changes: fc.nat({ max: 20 }),
  everyMs: fc.constantFrom(0, 3, 40, 900),
});
const attend: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constantFrom('quit', 'join'), shard });
/** Too short for anybody to notice; long enough to be noticed; longer than the ends wait. */
const stall: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('stall'),
  cache: number,
  isUp: fc.boolean(),
  ms: fc.constantFrom(2_000, 9_000, 18_000, 40_000),
});
const clock: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('clock'),
  cache: number,
  byMs: fc.constantFrom(-5 * millisecondsPerHour, -1_000, 60_000, 7 * millisecondsPerHour),
});

const spare: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('spare'), shard, cache: number });
const balance: fc.Arbitrary<TreeStep> = fc.record({ kind: fc.constant('balance'), shard, cache: number });
const sever: fc.Arbitrary<TreeStep> = fc.record({
  kind: fc.constant('sever'),
  shard,
  how: fc.constantFrom('cut', 'deaf', 'mute'),
  ms: fc.constantFrom(2_000, 15_000, 40_000),
});

/** The parent of each cache is an earlier one. */
const follows = fc.array(number, { minLength: 1, maxLength: 4 });

const whatever = fc.oneof(
  { weight: 6, arbitrary: pass },
  { weight: 5, arbitrary: put },
  { weight: 2, arbitrary: remove },
  { weight: 2, arbitrary: write },
  { weight: 1, arbitrary: unwrite },
  { weight: 2, arbitrary: path },
  { weight: 2, arbitrary: declare },
  { weight: 3, arbitrary: cacheStep('partition', 'heal', 'cut', 'deaf', 'mute') },
  { weight: 2, arbitrary: flow },
  { weight: 2, arbitrary: stall },
  { weight: 1, arbitrary: clock },
  { weight: 2, arbitrary: attend },
  { weight: 2, arbitrary: spare },
  { weight: 1, arbitrary: balance },
  { weight: 2, arbitrary: sever },
  { weight: 2, arbitrary: crash },
  { weight: 3, arbitrary: start },
  { weight: 4, arbitrary: cacheStep('stop', 'wipe', 'backup', 'restore', 'freeze', 'thaw', 'compact', 'rewrite') },
  { weight: 2, arbitrary: tamper },
  { weight: 2, arbitrary: policy },
  { weight: 2, arbitrary: moveOrigin },
  { weight: 1, arbitrary: clear },
  { weight: 2, arbitrary: reparent },
);
const untroubled = fc.oneof(
  { weight: 4, arbitrary: pass },
  { weight: 4, arbitrary: put },
  { weight: 4, arbitrary: remove },
  { weight: 4, arbitrary: path },
  { weight: 1, arbitrary: flow },
);

/** `creditMutations`: the changes that may be on their way over a link. */
export type RandomTree = Readonly<{ seed: number; follows: readonly number[]; creditMutations?: number; steps: readonly TreeStep[] }>;

export function randomTree({ isTroubled }: Readonly<{ isTroubled: boolean }>): fc.Arbitrary<RandomTree> {
  const steps = fc.array(isTroubled ? whatever : untroubled, { maxLength: stepsMax, size: 'max' });
  return fc.record({ seed: fc.nat(), follows, creditMutations: fc.constantFrom(2_048, 4), steps });
}

/** Counts what was played without a failure. */
export class Tally {
  #trees = 0;
  #steps = 0;
  #hours = 0;
  #changes = 0;

  add(steps: number, virtualMs: number, changes: number): void {
    this.#trees += 1;
    this.#steps += steps;
    this.#hours += virtualMs / millisecondsPerHour;
    this.#changes += changes;
  }

  toString(): string {
    return `${this.#trees} trees, ${this.#hours.toFixed(1)} tree-hours, ${this.#steps} steps, ${this.#changes} objects over links`;
  }
}

/** Throws an error with everything that is wrong. */
export async function play({ seed, follows: above, creditMutations, steps }: RandomTree, tally?: Tally) {
  const world = new SimWorld(seed);
  const crossings = new Crossings(world.network);
  // With little credit, the ends notice a frame lost by tampering only when they give up its
  // connection, after minutes.
  const isShort = creditMutations !== undefined && !steps.some(({ kind }) => kind === 'tamper');
  const tree = new SimTree(world, cachesOf(above), { intake: isShort ? { creditMutations } : {} });
  const check = new FreshnessCheck(world, tree, { mayBeSilent: steps.some(({ kind }) => kind === 'sever') });
  const script = new TreeScript(world, tree, check);
  await tree.start();
  await script.run([...begin, ...steps]);
  await script.heal();
  await script.supervise();
  await tree.converge(convergeMaxMs);
  const differed = world.warnings.get('link.digest-differs');
  // The test allows repeats if a path moves while a policy has changed. The sender then decides by
  // the new policy which objects have crossed, not by what it sent under the old one.
  const mayRepeat = ['path', 'policy'].every((kind) => steps.some((step) => step.kind === kind));
  const repeats = mayRepeat ? [] : crossings.repeats;
  const wrong = [...world.faults, ...repeats, ...(differed === undefined ? [] : [`a digest differed: ${differed.last}`])];
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
  tally?.add(steps.length, world.time.elapsedMs, crossings.objects);
  return { world, tree, crossings, check };
}

const begin: readonly TreeStep[] = [0, 1, 2].map((number) => ({ kind: 'moveOrigin', shard: number, cache: number * 2 + 1, objects: 6 }));

function cachesOf(above: readonly number[]): readonly ModelCache[] {
  const root: ModelCache = { name: 'cache-0', parent: undefined, ...aScriptPolicy({ forward: 0, follow: 0, accept: 0, offer: 0 }) };
  return [
    root,
    ...above.map((each, index): ModelCache => ({ ...root, name: `cache-${index + 1}`, parent: `cache-${each % (index + 1)}` })),
  ];
}
