import test from 'ava';
import { Heartbeat } from '../../src/tier/heartbeat.js';
import { ManualClock } from '../store/manual-clock.js';

function setUp() {
  const clock = new ManualClock();
  const sent: number[] = [];
  const heartbeat = new Heartbeat({ clock, send: (number) => sent.push(number) });
  return { clock, sent, heartbeat };
}

test('it is asked once a second, and answered with when it was asked', (t) => {
  const { clock, sent, heartbeat } = setUp();
  const askedMs = clock.now();

  heartbeat.ask();
  clock.advance(300);
  t.is(heartbeat.answered(1), askedMs);
  clock.advance(699);
  t.deepEqual(sent, [1]);
  clock.advance(1);

  t.deepEqual(sent, [1, 2]);
  t.is(heartbeat.answered(2), askedMs + 1_000);
});

test('nothing more is asked before the answer, and then at once where a second has passed', (t) => {
  const { clock, sent, heartbeat } = setUp();
  const askedMs = clock.now();
  heartbeat.ask();

  clock.advance(60_000);
  t.deepEqual(sent, [1]);
  t.is(heartbeat.answered(1), askedMs);
  clock.advance(0);

  t.deepEqual(sent, [1, 2]);
});

test('an answer to what was not asked, or was answered before, is none', (t) => {
  const { clock, sent, heartbeat } = setUp();
  t.is(heartbeat.answered(0), undefined);
  heartbeat.ask();

  t.is(heartbeat.answered(0), undefined);
  t.is(heartbeat.answered(2), undefined);
  t.not(heartbeat.answered(1), undefined);
  t.is(heartbeat.answered(1), undefined);
  clock.advance(1_000);

  t.deepEqual(sent, [1, 2]);
});

test('nothing is asked once it is closed', (t) => {
  const { clock, sent, heartbeat } = setUp();
  heartbeat.ask();
  heartbeat.answered(1);

  heartbeat.close();
  clock.advance(10_000);

  t.deepEqual(sent, [1]);
});
