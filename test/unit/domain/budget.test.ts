/** A budget that many share: it is never exceeded, and no waiter is forgotten. */
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { Budget } from '../../../src/domain/base/budget.js';

test('an amount taken from a budget is also taken from the budgets above it, and given back to them', (t) => {
  const all = new Budget(10);
  const [one, other] = [new Budget(8, all), new Budget(8, all)];

  t.true(one.tryReserve(6));
  t.false(other.tryReserve(5));
  t.true(other.tryReserve(4));
  t.deepEqual([one.used, other.used, all.used], [6, 4, 10]);
  one.release(6);
  t.true(other.tryReserve(4));
  t.deepEqual([one.used, other.used, all.used], [0, 8, 8]);
});

test('an amount larger than the bound fits while the budget is empty, and only then', (t) => {
  const budget = new Budget(10);

  t.true(budget.tryReserve(25));
  t.false(budget.tryReserve(1));
  budget.release(25);
  t.true(budget.tryReserve(1));
  t.false(budget.tryReserve(25));
});

test('waiters are served in the order of arrival, and not at all once they give up', (t) => {
  const budget = new Budget(10);
  const served: string[] = [];
  budget.add(10);
  budget.reserve(8, () => served.push('first'));
  const giveUp = budget.reserve(8, () => served.push('second'));
  budget.reserve(2, () => served.push('third'));

  budget.release(5);
  t.deepEqual(served, []);
  budget.release(5);
  t.deepEqual(served, ['first']);
  giveUp();
  t.deepEqual(served, ['first', 'third']);
  t.is(budget.used, 10);
});

test('a waiter for the upper budget does not block those who need only the lower one', (t) => {
  const all = new Budget(10);
  const [one, other] = [new Budget(10, all), new Budget(10, all)];
  const served: string[] = [];
  one.add(10);
  other.reserve(4, () => served.push('other'));

  one.release(3);
  t.deepEqual(served, []);
  one.release(3);

  t.deepEqual(served, ['other']);
  t.is(all.used, 8);
});

test('no smaller request overtakes a waiter of an upper budget', (t) => {
  const all = new Budget(10);
  const [one, other, third] = [new Budget(10, all), new Budget(10, all), new Budget(10, all)];
  const served: string[] = [];
  one.add(10);
  other.reserve(8, () => served.push('large'));

  one.release(5);
  third.reserve(1, () => served.push('small'));
  t.deepEqual(served, []);
  one.release(5);

  t.deepEqual(served, ['large', 'small']);
  t.is(all.used, 9);
});

test('a waiter that a lower budget held up queues behind those who already wait at the upper one', (t) => {
  const all = new Budget(10);
  const [one, two, three] = [new Budget(4, all), new Budget(10, all), new Budget(10, all)];
  const served: string[] = [];
  one.add(4);
  two.add(6);
  three.reserve(5, () => served.push('large'));
  one.reserve(3, () => served.push('small'));

  one.release(4);
  t.deepEqual(served, []);
  two.release(6);

  t.deepEqual(served, ['large', 'small']);
  t.is(all.used, 8);
});

type Step = Readonly<{ kind: 'try' | 'take' | 'give' | 'giveUp'; leaf: number; amount: number }>;

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('try' as const, 'take' as const, 'give' as const, 'giveUp' as const),
    leaf: fc.nat(3),
    amount: fc.integer({ min: 1, max: 8 }),
  }),
  { maxLength: 60 },
);

test('whatever is taken and given: no bound is exceeded, sums are right, and nobody waits for free room', (t) => {
  fc.assert(
    fc.property(steps, (script) => {
      const all = new Budget(12);
      const parts = [new Budget(8, all), new Budget(8, all)];
      const leaves = [0, 1, 2, 3].map((leaf) => new Budget(6, parts[leaf % 2]));
      const held: { leaf: number; amount: number }[] = [];
      const waiting: { leaf: number; amount: number; giveUp: () => void }[] = [];

      for (const { kind, leaf, amount } of script) {
        const budget = leaves[leaf]!;
        if (kind === 'try' && budget.tryReserve(amount)) held.push({ leaf, amount });
        if (kind === 'take') {
          const wait = { leaf, amount, giveUp: () => {} };
          waiting.push(wait);
          wait.giveUp = budget.reserve(amount, () => {
            waiting.splice(waiting.indexOf(wait), 1);
            held.push({ leaf, amount });
          });
        }
        const given = kind === 'give' ? held.shift() : undefined;
        if (given !== undefined) leaves[given.leaf]!.release(given.amount);
        const left = kind === 'giveUp' ? waiting.shift() : undefined;
        left?.giveUp();

        const sum = (of: (leaf: number) => boolean): number => held.filter((each) => of(each.leaf)).reduce((n, each) => n + each.amount, 0);
        leaves.forEach((each, i) =>
          t.is(
            each.used,
            sum((of) => of === i),
          ),
        );
        t.is(
          all.used,
          sum(() => true),
        );
        // An amount larger than its bound is the only one in the budget.
        for (const [each, max] of [[all, 12] as const, ...parts.map((part) => [part, 8] as const)]) t.true(each.used <= Math.max(max, 8));
        // Nobody is at the head of a queue while all budgets on the way have room.
        if (waiting.length > 0) t.true(held.length > 0, 'somebody waits though nothing is held');
      }
      for (const each of held.splice(0)) leaves[each.leaf]!.release(each.amount);
      while (held.length > 0) for (const each of held.splice(0)) leaves[each.leaf]!.release(each.amount);
      t.is(waiting.length, 0);
      t.is(all.used, 0);
    }),
    { numRuns: rounds(300) },
  );
});
