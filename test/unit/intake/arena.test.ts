import { test } from '../../support/test.js';
import { arena } from '../../../src/intake/push/admit-frame.js';

test('pieces are placed one after another in one buffer, and a piece that does not fit gets its own buffer', (t) => {
  const allocate = arena(10);

  const [first, second, third, fourth] = [allocate(4), allocate(5), allocate(2), allocate(1)];

  t.is(first?.buffer, second?.buffer);
  t.is(second?.byteOffset, 4);
  t.not(third?.buffer, first?.buffer);
  t.is(fourth?.buffer, first?.buffer);
  t.deepEqual(
    [first, second, third, fourth].map((piece) => piece?.length),
    [4, 5, 2, 1],
  );
});
