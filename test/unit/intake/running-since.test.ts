import { test } from '../../support/test.js';
import { RunningSince } from '../../../src/intake/shards/running-since.js';
import { ManualClock } from '../../support/store/manual-clock.js';

test('a process has run since its start, or since the end of its last pause, whoever asks first', (t) => {
  const clock = new ManualClock();
  const running = new RunningSince(clock);
  const startMs = clock.now();

  clock.advance(600_000);
  t.is(running.ms(), startMs);

  clock.skip(60_000);
  const endMs = clock.now();
  t.is(running.ms(), endMs, 'asked before a tick');
  clock.advance(600_000);
  t.is(running.ms(), endMs);

  clock.skip(60_000);
  const secondMs = clock.now();
  clock.advance(5_000);
  t.is(running.ms(), secondMs, 'noticed by a tick');

  running.close();
  t.is(clock.pending, 0);
});
