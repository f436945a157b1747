import { test } from '../../support/test.js';
import fc from 'fast-check';
import { Line } from '../../../src/domain/base/queues.js';
import { fastestMs } from '../../support/fastest.js';

test('the first is the member that has waited longest, whoever leaves', (t) => {
  const line = new Line<string>();
  for (const name of ['a', 'b', 'c', 'd']) line.add(name);

  t.is(line.first, 'a');
  t.is(line.first, 'a');
  line.delete('b');
  line.delete('a');
  t.is(line.first, 'c');
  line.passFirst();
  t.is(line.first, 'd');
  line.delete('d');
  t.is(line.first, 'c');
  line.clear();
  t.is(line.first, undefined);
  line.add('e');
  t.is(line.first, 'e');
});

test('whoever joins and leaves, the first is a member if there is any, and each member is first within one round', (t) => {
  const step = fc.tuple(fc.constantFrom('add', 'delete', 'pass'), fc.nat(9));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const [line, members] = [new Line<number>(), new Set<number>()];
      for (const [what, member] of steps) {
        if (what === 'pass') line.passFirst();
        else {
          line[what as 'add' | 'delete'](member);
          members[what as 'add' | 'delete'](member);
        }
        if (members.size === 0 ? line.first !== undefined : !members.has(line.first!)) throw new Error(`${line.first} is first`);
        if (line.size !== members.size) throw new Error('it has another size');
      }
      const seen = new Set<number | undefined>();
      for (let round = 0; round < 2 * members.size; round += 1) {
        seen.add(line.first);
        line.passFirst();
      }
      if (seen.size !== members.size) throw new Error('somebody never was first');
    }),
  );
  t.pass();
});

test('taking the first of 100,000 repeatedly takes linear time', (t) => {
  const takeAll = (count: number): void => {
    const line = new Line<number>();
    for (let i = 0; i < count; i += 1) line.add(i);
    for (let first = line.first; first !== undefined; first = line.first) line.delete(first);
  };

  const fewMs = fastestMs(() => takeAll(10_000), 5);
  t.true(fastestMs(() => takeAll(100_000), 2) < 40 * fewMs + 20);
});
