import { test } from '../../support/test.js';
import { ActivityLog, type Totals } from '../../../src/console/activity.js';
import { ManualClock } from '../../support/store/manual-clock.js';

test('rates are computed for each interval, the oldest first, and only a bounded number is kept', (t) => {
  const clock = new ManualClock();
  let totals: Totals = { requests: 10, written: 0, events: 0, refused: 0 };
  const log = new ActivityLog({ clock, totals: () => totals }, { intervalMs: 2_000, samplesMax: 2 });

  t.deepEqual(log.read(), { intervalMs: 2_000, perSecond: { requests: [], written: [], events: [], refused: [] } });
  totals = { ...totals, requests: 110, refused: 1 };
  clock.advance(2_000);
  totals = { ...totals, written: 6 };
  clock.advance(2_000);
  t.deepEqual(log.read().perSecond, { requests: [50, 0], written: [0, 3], events: [0, 0], refused: [0.5, 0] });
  clock.advance(2_000);
  t.deepEqual(log.read().perSecond.written, [3, 0]);
  log.close();
});
