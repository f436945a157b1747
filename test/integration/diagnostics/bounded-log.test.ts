import { test } from '../../support/test.js';
import { BoundedLog } from '../../../src/diagnostics/bounded-log.js';
import type { Log } from '../../../src/diagnostics/log.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { silent } from '../../support/test-store.js';

test('beyond two hundred lines in ten seconds refusals are only counted, and the next line has the count', (t) => {
  const lines: unknown[] = [];
  const log: Log = { ...silent, warn: (_, fields) => void lines.push(fields) };
  const clock = new ManualClock();
  const bounded = new BoundedLog({ clock, log });

  for (let i = 0; i < 210; i += 1) bounded.warn('refused', { i });
  t.is(lines.length, 200);
  clock.advance(10_000);
  bounded.warn('refused', { i: 210 });
  bounded.warn('refused', { i: 211 });

  t.deepEqual(lines.slice(200), [{ i: 210, unlogged: 10 }, { i: 211 }]);
});
