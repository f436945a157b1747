import { test } from '../../support/test.js';
import { countsByResource, mixedObject, mixedTypes, nameDigits, nameMark, roundMark } from '../../../bench/harness/mixed-objects.js';

const objects = Array.from({ length: 4_000 }, (_, index) => mixedObject(index));

test('objects are from 0.5 to 200 kB, most of them small', (t) => {
  const sizes = objects.map(({ text }) => text(0).length).toSorted((a, b) => a - b);
  const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;

  t.true(sizes[0]! >= 450, `the smallest has ${sizes[0]}`);
  t.true(sizes.at(-1)! <= 200_100 && sizes.at(-1)! > 100_000, `the largest has ${sizes.at(-1)}`);
  t.true(sizes[sizes.length / 2]! < 3_000, `the median has ${sizes[sizes.length / 2]}`);
  t.true(mean > 3_000 && mean < 6_000, `the mean is ${mean}`);
});

test('an object is what a Kubernetes client expects, and the same every time', (t) => {
  for (const [index, { text, name, type }] of objects.slice(0, 200).entries()) {
    t.like(JSON.parse(text(3, '17')), { kind: type.kind, metadata: { name, generation: 1, resourceVersion: '17' } });
    t.is(mixedObject(index).text(3), text(3));
    t.is(text(3), JSON.stringify(JSON.parse(text(3))));
  }
});

test('types are mixed, and counted without their texts', (t) => {
  const counts = countsByResource(objects.length);

  for (const { resource } of mixedTypes) {
    t.is(counts.get(resource), objects.filter(({ type }) => type.resource === resource).length);
    t.true((counts.get(resource) ?? 0) > 300);
  }
});

test('the marks of name and round occur once in a text, followed by its index and its round', (t) => {
  for (const [index, { text }] of objects.slice(0, 200).entries()) {
    for (const [mark, value] of [
      [nameMark, String(index).padStart(nameDigits, '0')],
      [roundMark, '41'],
    ] as const)
      t.deepEqual(
        text(41)
          .split(mark)
          .slice(1)
          .map((rest) => rest.slice(0, value.length)),
        [value],
      );
  }
});
