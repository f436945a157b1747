/** These tests wait in real time, because they test the real clock. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';

test('a delay longer than a Node timer holds does not fire at once', async (t) => {
  let fired = false;
  const cancel = systemClock.after(30 * 86_400_000, () => (fired = true));
  t.teardown(cancel);

  await sleep(20);

  t.false(fired);
});

test('a task runs once after its delay, and never if it is cancelled', async (t) => {
  const ran: string[] = [];
  systemClock.after(5, () => ran.push('kept'));
  systemClock.after(5, () => ran.push('cancelled'))();

  await sleep(40);

  t.deepEqual(ran, ['kept']);
});
