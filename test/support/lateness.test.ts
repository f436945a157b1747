/** What the tests of caches under writes measure with. */
import test from 'ava';
import { Lateness } from './lateness.js';

const look = (atMs: number) => ({ beganMs: atMs, endedMs: atMs + 100 });

test('what differs at every look, each time otherwise, does not last', (t) => {
  const lateness = new Lateness();

  for (let at = 0; at < 10_000; at += 500) lateness.see([`n${at} is absent`], look(at));

  t.is(lateness.latest.atLeastMs, 0);
  t.is(lateness.latest.atMostMs, 600);
});

test('what differs in the same way lasts from the look that saw it first to the last that did, and at most to the next', (t) => {
  const lateness = new Lateness();

  lateness.see([], look(0));
  lateness.see(['a', 'b'], look(500));
  lateness.see(['b'], look(1_000));
  lateness.see(['b'], look(4_000));
  lateness.see([], look(9_000));

  t.deepEqual(lateness.latest, { difference: 'b', atLeastMs: 3_400, atMostMs: 8_600 });
});

test('what still differs counts up to the last look', (t) => {
  const lateness = new Lateness();

  lateness.see(['a'], look(0));
  lateness.see(['a'], look(9_000));

  t.deepEqual(lateness.latest, { difference: 'a', atLeastMs: 8_900, atMostMs: 9_100 });
});

test('what was the same in between begins anew', (t) => {
  const lateness = new Lateness();

  lateness.see(['a'], look(0));
  lateness.see([], look(1_000));
  lateness.see(['a'], look(9_000));
  lateness.see(['a'], look(10_000));

  t.deepEqual(lateness.latest, { difference: 'a', atLeastMs: 900, atMostMs: 1_100 });
});
