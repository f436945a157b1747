import { test } from '../../support/test.js';
import { Heartbeat } from '../../../src/tree/links/heartbeat.js';
import { ManualClock } from '../../support/store/manual-clock.js';

function setUp() {
  const clock = new ManualClock();
  const sent: number[] = [];
  const heartbeat = new Heartbeat({ clock, send: (number) => sent.push(number) });
  return { clock, sent, heartbeat };
}

test('a heartbeat is requested once a second, and its answer is dated by the request', (t) => {
  const { clock, sent, heartbeat } = setUp();
  const askedMs = clock.now();

  heartbeat.send();
  clock.advance(300);
  t.is(heartbeat.answered(1), askedMs);
  clock.advance(699);
  t.deepEqual(sent, [1]);
  clock.advance(1);

  t.deepEqual(sent, [1, 2]);
  t.is(heartbeat.answered(2), askedMs + 1_000);
});

test('no heartbeat is requested before the last is answered; then the next goes at once if a second has passed', (t) => {
  const { clock, sent, heartbeat } = setUp();
  const askedMs = clock.now();
  heartbeat.send();

  clock.advance(60_000);
  t.deepEqual(sent, [1]);
  t.is(heartbeat.answered(1), askedMs);
  clock.advance(0);

  t.deepEqual(sent, [1, 2]);
});

test('an answer to a heartbeat that was never requested, or was already answered, does not count', (t) => {
  const { clock, sent, heartbeat } = setUp();
  t.is(heartbeat.answered(0), undefined);
  heartbeat.send();

  t.is(heartbeat.answered(0), undefined);
  t.is(heartbeat.answered(2), undefined);
  t.not(heartbeat.answered(1), undefined);
  t.is(heartbeat.answered(1), undefined);
  clock.advance(1_000);

  t.deepEqual(sent, [1, 2]);
});

test('after close no heartbeat is requested', (t) => {
  const { clock, sent, heartbeat } = setUp();
  heartbeat.send();
  heartbeat.answered(1);

  heartbeat.close();
  clock.advance(10_000);

  t.deepEqual(sent, [1]);
});
