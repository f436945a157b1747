/** Tests the measure that the tests of caches under writes use. */
import { test } from './test.js';
import { Lateness } from './lateness.js';

const look = (atMs: number) => ({ beganMs: atMs, endedMs: atMs + 100 });

test('a difference that every comparison finds changed does not last', (t) => {
  const lateness = new Lateness();

  for (let at = 0; at < 10_000; at += 500) lateness.see([`n${at} is absent`], look(at));

  t.is(lateness.latest.atLeastMs, 0);
  t.is(lateness.latest.atMostMs, 600);
});

test('a difference lasts at least from the first to the last comparison that saw it, and at most until the next', (t) => {
  const lateness = new Lateness();

  lateness.see([], look(0));
  lateness.see(['a', 'b'], look(500));
  lateness.see(['b'], look(1_000));
  lateness.see(['b'], look(4_000));
  lateness.see([], look(9_000));

  t.deepEqual(lateness.latest, { difference: 'b', atLeastMs: 3_400, atMostMs: 8_600 });
});

test('a difference that still exists counts until the last comparison', (t) => {
  const lateness = new Lateness();

  lateness.see(['a'], look(0));
  lateness.see(['a'], look(9_000));

  t.deepEqual(lateness.latest, { difference: 'a', atLeastMs: 8_900, atMostMs: 9_100 });
});

test('a difference that disappears and returns counts from its return', (t) => {
  const lateness = new Lateness();

  lateness.see(['a'], look(0));
  lateness.see([], look(1_000));
  lateness.see(['a'], look(9_000));
  lateness.see(['a'], look(10_000));

  t.deepEqual(lateness.latest, { difference: 'a', atLeastMs: 900, atMostMs: 1_100 });
});
