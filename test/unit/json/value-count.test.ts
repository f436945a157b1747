/**
 * The count by which a text is refused before it is parsed must equal the number of values that a
 * parser would make. Too low a count would admit a tree that takes all memory.
 */
import fc from 'fast-check';
import { boundedText, countValues } from '../../../src/json/value-count.js';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';

/**
 * The number of values that a parser makes of this one, and how many of them are empty arrays or
 * objects.
 */
function counted(value: unknown): { values: number; empty: number } {
  if (typeof value !== 'object' || value === null) return { values: 1, empty: 0 };
  const inner = Object.values(value).map(counted);
  const sum = (of: 'values' | 'empty'): number => inner.reduce((total, each) => total + each[of], 0);
  return { values: 1 + sum('values'), empty: sum('empty') + (inner.length === 0 ? 1 : 0) };
}

test('every value of a text is counted once, whatever its strings contain, and an empty one at most twice', (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.boolean(), (value, isIndented) => {
      const { values, empty } = counted(value);
      const count = countValues(Buffer.from(JSON.stringify(value, undefined, isIndented ? 2 : 0)), Infinity);
      return values <= count && count <= values + empty;
    }),
    { numRuns: rounds(2_000) },
  );
  t.is(countValues(Buffer.from('["a,[{\\"", "\\\\", {",": ","}]'), Infinity), 5);
  t.is(countValues(Buffer.from('"never closed, [[['), Infinity), 1);
});

test('counting stops just above the maximum', (t) => {
  t.is(countValues(Buffer.from('[1,2,3,4,5,6]'), 3), 4);
});

test('a text is refused if it has more bytes or more values than it may', (t) => {
  const bounds = { bytesMax: 7, valuesMax: 4 };
  t.is(boundedText(Buffer.from('[1,2,3]'), bounds), '[1,2,3]');
  t.is(boundedText(Buffer.from('[1,2,3] '), bounds), undefined);
  t.is(boundedText(Buffer.from('[1,2,3]'), { ...bounds, valuesMax: 3 }), undefined);
});
