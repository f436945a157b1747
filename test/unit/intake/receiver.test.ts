import { test } from '../../support/test.js';
import type { PushLane } from '../../../src/domain/store-port.js';
import type { Push } from '../../../src/domain/push.js';
import { Receiver } from '../../../src/intake/push/receiver.js';
import { aContext, begin, end, everyType, pushed, put, schemas } from '../../support/intake/a-receiver.js';

test('an end that is held for approval stays held where it waits for a declaration of its type', async (t) => {
  const given: Push[] = [];
  let decide = (): void => {};
  const lane: PushLane = {
    drained: () => Promise.resolve(),
    push: (pushes) => {
      given.push(...pushes);
      return new Promise((resolve) => (decide = () => resolve(pushes.map(() => ({ kind: 'unchanged' })))));
    },
  };
  let isDeclared = true;
  const receiver = new Receiver({
    lane,
    turn: () => Promise.resolve(),
    metrics: { pushes: { add: () => {}, total: () => 0, forget: () => {} } },
    context: () => aContext({ typeOf: (...type) => (isDeclared ? everyType(...type) : undefined) }),
    run: () => {},
    terminate: () => t.fail(),
  });
  await receiver.accept(begin(1));
  decide();
  await receiver.decided;
  await receiver.accept(put(2, [pushed('one')], schemas));

  isDeclared = false;
  const taken = receiver.accept(end(3, 0), true);
  isDeclared = true;
  decide();
  await taken;

  t.deepEqual(
    given.map(({ kind }) => kind),
    ['begin', 'upsert', 'invalidate'],
  );
});

test('an error in the receiver cuts the connection off, and close throws that error', async (t) => {
  let cuts = 0;
  const lane: PushLane = { drained: () => Promise.resolve(), push: () => Promise.reject(new Error('a bug of the store')) };
  const receiver = new Receiver({
    lane,
    turn: () => Promise.resolve(),
    metrics: { pushes: { add: () => {}, total: () => 0, forget: () => {} } },
    context: () => aContext(),
    run: () => {},
    terminate: () => void (cuts += 1),
  });

  await receiver.accept(begin(1));

  await t.throwsAsync(receiver.close(), { message: 'a bug of the store' });
  t.is(cuts, 1);
});
