import { test } from '../../support/test.js';
import { mergeRounds, type Sample } from '../../../bench/harness/merge-rounds.js';
import { atLeast, misses } from '../../../bench/harness/question.js';

test('a figure is the median of its rounds, with those of the other servers beside it', (t) => {
  const { figures } = mergeRounds(
    'HTTP/2',
    new Map([
      ['measured', [sample(100), sample(300), sample(200)]],
      ['against', [sample(400), sample(100), sample(100)]],
      ['bare', [sample(1_000)]],
    ]),
  );

  t.is(figures.length, 1);
  t.like(figures[0], { name: 'gets over HTTP/2', value: 200, against: 100, ceiling: 1_000, rounds: [100, 300, 200] });
});

test('a figure that the other server does not have stands alone, and misses no ratio', (t) => {
  const { figures } = mergeRounds('HTTP/2', new Map([['measured', [sample(100)]]]));

  t.deepEqual(Object.keys(figures[0]!).toSorted(), ['name', 'ratioLimit', 'unit', 'value']);
  t.false(misses(figures[0]!));
});

test('a figure that is slower than the other server misses its ratio', (t) => {
  const { figures } = mergeRounds(
    'HTTP/2',
    new Map([
      ['measured', [sample(90)]],
      ['against', [sample(100)]],
    ]),
  );

  t.true(misses(figures[0]!));
});

test('an unknown value gives no figure', (t) => {
  t.deepEqual(mergeRounds('HTTP/2', new Map([['measured', [sample(Number.NaN)]]])).figures, []);
});

test('a law that is broken in one round is broken', (t) => {
  const kept = { values: [], checks: [{ law: 'all come', holds: true, detail: '' }] };
  const broken = { values: [], checks: [{ law: 'all come', holds: false, detail: 'one did not' }] };

  const { checks } = mergeRounds('HTTP/2', new Map([['measured', [kept, broken, kept]]]));

  t.deepEqual(checks, [{ law: 'all come, over HTTP/2', holds: false, detail: 'one did not' }]);
});

test('a law that another server breaks becomes a remark', (t) => {
  const broken = { values: [], checks: [{ law: 'all come', holds: false, detail: 'one did not' }] };

  const { checks, remarks } = mergeRounds(
    'HTTP/2',
    new Map([
      ['measured', []],
      ['against', [broken]],
    ]),
  );

  t.deepEqual([checks, remarks], [[], ['not kept by against: all come, over HTTP/2 (one did not)']]);
});

function sample(value: number): Sample {
  return { values: [{ name: 'gets', value, unit: '/s', ratioLimit: atLeast(1) }] };
}
