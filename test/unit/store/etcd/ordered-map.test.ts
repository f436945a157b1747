import { Buffer } from 'node:buffer';
import { largeTest, rounds } from '../../../support/sizes.js';
import { test } from '../../../support/test.js';
import fc from 'fast-check';
import { compareUtf8 } from '../../../../src/domain/syntax/version-order.js';
import { OrderedMap } from '../../../../src/store/etcd/ordered-map.js';
import { anyCharacter } from '../../../support/any-character.js';

const text = fc.string({ unit: anyCharacter, maxLength: 6 });

test('texts are ordered by their bytes', (t) => {
  fc.assert(
    fc.property(text, text, (one, other) => {
      t.is(Math.sign(compareUtf8(one, other)), Buffer.compare(Buffer.from(one), Buffer.from(other)));
    }),
  );
});

test('whatever is set and deleted, the map holds what a plain map does, in order, from any key on', (t) => {
  const key = fc.integer({ min: 0, max: 5_000 }).map((number) => `k${number}`);
  const step = fc.oneof({ weight: 3, arbitrary: fc.record({ set: key }) }, { weight: 2, arbitrary: fc.record({ remove: key }) });
  fc.assert(
    fc.property(fc.array(step, { size: 'max', maxLength: 4_000 }), key, (steps, after) => {
      const [map, plain] = [new OrderedMap<number>(), new Map<string, number>()];
      for (const [i, each] of steps.entries())
        if ('set' in each) {
          map.set(each.set, i);
          plain.set(each.set, i);
        } else t.is(map.delete(each.remove), plain.delete(each.remove));
      const sorted = [...plain].toSorted(([a], [b]) => (a < b ? -1 : 1));
      t.is(map.size, plain.size);
      t.deepEqual([...map.entries()], sorted);
      t.deepEqual(
        [...map.entries(after)],
        sorted.filter(([name]) => name > after),
      );
      for (const [name, value] of plain) if (map.get(name) !== value) t.fail(name);
    }),
    { numRuns: rounds(40) },
  );
});

test('a read that continues while keys are added and removed shows each key that stayed, once', (t) => {
  const map = new OrderedMap<number>();
  for (let i = 0; i < 3_000; i += 1) map.set(`k${String(i).padStart(5, '0')}`, i);
  const seen: string[] = [];

  for (const [key, value] of map.entries()) {
    seen.push(key);
    if (value % 3 === 0) map.delete(key);
    if (value % 5 === 0) map.set(`${key}-new`, -1);
  }

  const old = seen.filter((key) => !key.endsWith('-new'));
  t.is(old.length, 3_000);
  t.deepEqual(seen, [...new Set(seen)].toSorted());
});

largeTest('two hundred thousand keys are set within microseconds each, and read in order', (t) => {
  const map = new OrderedMap<number>();
  const beganMs = performance.now();
  for (let i = 0; i < 200_000; i += 1) map.set(`shard-${i % 7}/cluster-${(i * 7919) % 1000}/name-${i}`, i);
  const eachUs = ((performance.now() - beganMs) * 1000) / 200_000;

  t.is(map.size, 200_000);
  t.true(eachUs < 100, `${eachUs.toFixed(1)} µs`);
  t.log(`${eachUs.toFixed(1)} µs for a key`);
  let before = '';
  for (const [key] of map.entries()) {
    if (key <= before) t.fail(`${key} behind ${before}`);
    before = key;
  }
});

test('after a key that the map does not have, the order is also that of bytes', (t) => {
  const map = new OrderedMap<number>();
  map.set('a', 1);
  map.set('！', 2);
  const behind = (after: string): readonly string[] => [...map.entries(after)].map(([key]) => key);

  // In UTF-16 this key sorts before the mark.
  t.deepEqual(behind('😀'), []);
  t.deepEqual(behind('b'), ['！']);
  map.set('😀x', 3);
  t.deepEqual(behind('😀'), ['😀x']);
  t.deepEqual(behind('！'), ['😀x']);
});
