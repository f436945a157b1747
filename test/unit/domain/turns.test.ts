import { test } from '../../support/test.js';
import fc from 'fast-check';
import { Turns } from '../../../src/domain/base/queues.js';

test('members have turns in order of arrival, and one that is added again while it waits keeps its place', (t) => {
  const steps = fc.array(fc.option(fc.integer({ min: 0, max: 5 }), { nil: 'next' as const }), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const turns = new Turns<number>();
      const expected: number[] = [];
      for (const step of all) {
        if (step === 'next') {
          turns.next();
          expected.shift();
        } else {
          turns.add(step);
          if (!expected.includes(step)) expected.push(step);
        }
        t.is(turns.first, expected[0]);
      }
    }),
  );
});
