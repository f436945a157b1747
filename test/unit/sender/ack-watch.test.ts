import { test } from '../../support/test.js';
import { AckWatch } from '../../../src/sender/ack-watch.js';
import { ManualClock } from '../../support/store/manual-clock.js';

test('a wait is overdue once no acknowledgement has arrived for so long while something is unacknowledged', (t) => {
  const clock = new ManualClock();
  const watch = new AckWatch(clock, { ackTimeoutMs: 60_000 });
  const window = { acknowledged: 0, unacknowledged: { mutations: 0, bytes: 0 } };

  clock.advance(100_000);
  t.false(watch.isOverdue(window), 'nothing is under way');
  window.unacknowledged = { mutations: 3, bytes: 10 };
  clock.advance(59_999);
  t.false(watch.isOverdue(window));
  window.acknowledged = 1;
  clock.advance(30_000);
  t.false(watch.isOverdue(window), 'something was acknowledged since');
  clock.advance(59_999);
  t.false(watch.isOverdue(window));
  clock.advance(1);
  t.true(watch.isOverdue(window));
});
