/** The metric of limits that callers reach. It would find a first refusal that no rate sees. */
import { PassThrough } from 'node:stream';
import { createLog } from '../../../src/diagnostics/log.js';
import { createMetrics } from '../../../src/diagnostics/metrics.js';
import { anonymous } from '../../../src/domain/caller.js';
import { limitReached } from '../../../src/http/limit-reached.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { test } from '../../support/test.js';

test('each limit has a series for each kind of caller that starts at 0', async (t) => {
  const clock = new ManualClock();
  const metrics = createMetrics({ processMetrics: false });
  const reached = limitReached({
    clock,
    log: createLog({ clock, stream: new PassThrough().resume() }, { level: 'error', format: 'json' }),
    metrics,
  });
  const series = async (): Promise<readonly string[]> => (await metrics.render()).match(/^strata_limits_reached_total\{.*$/gm) ?? [];
  t.is((await series()).filter((line) => line.endsWith(' 0')).length, 7 * 7);

  reached('watches', { id: 'alice', kind: 'reader' }, anonymous);

  t.deepEqual(
    (await series()).filter((line) => !line.endsWith(' 0')),
    ['strata_limits_reached_total{limit="watches",caller="reader"} 1'],
  );
});
