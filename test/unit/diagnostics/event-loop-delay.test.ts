/** These tests wait in real time, because they measure the real loop. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { EventLoopDelay } from '../../../src/diagnostics/event-loop-delay.js';

test('a blocked loop shows in the window in which it was blocked, and not in the next', async (t) => {
  let turn = (): void => {};
  let cancelled = 0;
  const clock = { now: () => 0, wallMs: () => 0, after: (_: number, task: () => void) => ((turn = task), () => void cancelled++) };
  const delay = new EventLoopDelay({ clock }, { resolutionMs: 10, windowMs: 1000 });
  t.teardown(() => delay.close());
  await sleep(30);

  const blockedUntil = performance.now() + 200;
  while (performance.now() < blockedUntil);
  await sleep(30);
  t.is(delay.p99Ms, 0);
  turn();
  t.true(delay.p99Ms > 100);
  turn();

  t.true(delay.p99Ms < 100);
  delay.close();
  t.is(cancelled, 1);
});
