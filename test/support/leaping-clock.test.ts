import { test } from './test.js';
import { LeapingClock } from './leaping-clock.js';
import { until } from './test-server.js';

const hourMs = 3_600_000;

test('a leap runs each task due by then once, in order of time, and no task that was cancelled', (t) => {
  const clock = new LeapingClock();
  const ran: string[] = [];
  const beganMs = clock.now();
  const after = (hours: number, name: string, more = (): void => {}): (() => void) =>
    clock.after(hours * hourMs, () => {
      ran.push(name);
      more();
    });
  const cancelThird = after(3, 'third');
  after(2, 'second', cancelThird);
  after(1, 'first');
  const cancelLast = after(5, 'last');
  after(4, 'cancelled')();

  clock.leap(hourMs / 2);
  t.deepEqual(ran, []);
  clock.leap(4 * hourMs);
  t.deepEqual(ran, ['first', 'second']);
  clock.leap(hourMs);
  t.deepEqual(ran, ['first', 'second', 'last']);
  clock.leap(hourMs);
  cancelLast();

  t.deepEqual(ran, ['first', 'second', 'last']);
  t.true(clock.now() - beganMs >= 6.5 * hourMs);
});

test('a task that a leap has brought near runs by itself', async (t) => {
  const clock = new LeapingClock();
  let ran = 0;
  clock.after(hourMs, () => (ran += 1));

  clock.leap(hourMs - 20);
  await until(() => ran > 0);

  t.is(ran, 1);
});
