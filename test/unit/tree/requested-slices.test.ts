import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { Slice } from '../../../src/domain/slice.js';
import { RequestedSlices } from '../../../src/tree/links/requested-slices.js';
import { UnknownSlices } from '../../../src/tree/links/unknown-slices.js';
import { shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';

const amber = shardName('amber');
const types = ['one', 'two', 'three', 'four', 'five'];
const [one, two, three, four, five] = types.map((resource) => aSlice({ resource })) as [Slice, Slice, Slice, Slice, Slice];

test('only so many slices are asked about at a time; when one is settled, the one that waited longest takes its place', (t) => {
  const asked = new RequestedSlices(2);
  t.deepEqual(
    [one, two, two, three, four, five].map((slice) => asked.add(slice)),
    [true, true, false, false, false, false],
  );

  t.is(asked.delete(three), undefined);
  t.is(asked.delete(three), undefined);
  t.is(asked.delete(one), four);
  t.deepEqual([...asked.of(amber)], [two, four]);
  t.is(asked.delete(four), five);
  t.is(asked.delete(two), undefined);
  t.true(asked.add(one));
  t.false(asked.add(two));
  t.is(asked.delete(five), two);
});

test('a slice counts as unknown until it is known, whether or not it has been asked about', (t) => {
  const asked: Slice[] = [];
  const unknown = new UnknownSlices((slice) => asked.push(slice));
  unknown.add(one);
  unknown.add(one);
  unknown.add(two);
  unknown.want(two);
  unknown.withdraw(two);
  t.deepEqual(
    [unknown.ofType(one.resource), unknown.ofType(two.resource), asked, [...unknown.requested(amber)]],
    [[one], [two], [two], []],
  );

  unknown.delete(two);
  unknown.delete(two);
  t.deepEqual([unknown.ofType(one.resource), unknown.ofType(two.resource)], [[one], []]);
});

largeTest('asking about slices in turn costs the same for each of 200,000 that wait', (t) => {
  const took = [2_000, 20_000, 200_000].map((count) => {
    const asked = new RequestedSlices(1_000);
    const slices = Array.from({ length: count }, (_, i) => aSlice({ identity: `i${i}` }));
    for (const slice of slices) asked.add(slice);
    const startedMs = performance.now();
    for (const slice of slices) asked.delete(slice);
    return (1_000 * (performance.now() - startedMs)) / count;
  });

  t.log(`${took.map((us) => us.toFixed(1)).join(', ')} µs each`);
  t.true((took[2] ?? 0) < 20 * Math.max(1, took[1] ?? 0));
});
