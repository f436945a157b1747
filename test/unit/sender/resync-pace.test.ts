import { test } from '../../support/test.js';
import { ResyncPace } from '../../../src/sender/resync-pace.js';
import { ManualClock } from '../../support/store/manual-clock.js';

function aPace(random: number) {
  const clock = new ManualClock();
  return { clock, pace: new ResyncPace({ clock, random: () => random }) };
}

test('the first requested resync starts at once, later ones after half to all of a bound that doubles up to a minute', (t) => {
  const [shortest, longest] = [aPace(0).pace, aPace(0.999_999).pace];
  const times = Array.from({ length: 9 });

  t.deepEqual(
    times.map(() => shortest.wantedMs()),
    [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000],
  );
  t.deepEqual(
    times.map(() => Math.round(longest.wantedMs())),
    [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000],
  );
});

test('a failed sync waits even the first time', (t) => {
  const { pace } = aPace(0);

  t.deepEqual([pace.failedMs(), pace.failedMs(), pace.wantedMs()], [500, 1_000, 2_000]);
});

test('only a sync that stayed good for a minute makes the next resync count as the first', (t) => {
  const { clock, pace } = aPace(0);
  pace.wantedMs();
  clock.advance(600_000);
  t.is(pace.wantedMs(), 500, 'it was never synced');

  pace.synced();
  clock.advance(59_999);
  t.is(pace.wantedMs(), 1_000);

  pace.synced();
  clock.advance(60_000);
  t.is(pace.wantedMs(), 0);
});
