import { test } from '../../support/test.js';
import { FairQueue } from '../../../src/heavy/fair-queue.js';

const limits = { itemsMax: 4, bytesMax: 100 };

function taken(queue: FairQueue<string>): readonly (string | undefined)[] {
  return Array.from({ length: 5 }, () => queue.take());
}

test('owners take turns, and the items of each owner keep their order', (t) => {
  const queue = new FairQueue<string>({ itemsMax: 10, bytesMax: 100 });
  for (const [owner, item] of [
    ['a', 'a1'],
    ['a', 'a2'],
    ['a', 'a3'],
    ['b', 'b1'],
  ] as const)
    t.true(queue.add(owner, item, 1));

  t.is(queue.take(), 'a1');
  t.true(queue.add('c', 'c1', 1));

  t.deepEqual(taken(queue), ['b1', 'a2', 'c1', 'a3', undefined]);
});

test('one owner gets half of the room, and all owners together no more than there is', (t) => {
  const queue = new FairQueue<string>(limits);

  t.deepEqual([queue.add('a', '1', 10), queue.add('a', '2', 10), queue.add('a', '3', 10)], [true, true, false]);
  t.deepEqual([queue.add('b', '4', 10), queue.add('c', '5', 10), queue.add('d', '6', 10)], [true, true, false]);
  t.deepEqual(taken(queue), ['1', '4', '5', '2', undefined]);
});

test('bytes are counted like items, and given back when an item is taken', (t) => {
  const queue = new FairQueue<string>(limits);

  t.deepEqual([queue.add('a', '1', 51), queue.add('a', '2', 50), queue.add('a', '3', 1)], [false, true, false]);
  t.deepEqual([queue.add('b', '4', 50), queue.add('c', '5', 1)], [true, false]);
  t.is(queue.take(), '2');
  t.true(queue.add('c', '5', 50));
});
