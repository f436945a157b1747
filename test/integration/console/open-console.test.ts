import { test } from '../../support/test.js';
import { LastLines } from '../../../src/diagnostics/last-lines.js';
import { createMetrics } from '../../../src/diagnostics/metrics.js';
import { Catalogue } from '../../../src/domain/catalogue/catalogue.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { openConsole } from '../../../src/server/open-console.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aStatusReport } from '../../support/status-report.js';
import { silent } from '../../support/test-store.js';

test('the console tries again to read files that it could not read', async (t) => {
  let tries = 0;
  const { console, close } = aConsole(
    async () => aStatusReport(),
    async () => {
      tries += 1;
      if (tries === 1) throw new Error('no descriptor is free');
      return { page: 'page', policy: '', assets: new Map() };
    },
  );
  t.teardown(close);

  await t.throwsAsync(console.files(), { message: /no descriptor/ });
  t.is((await console.files()).page, 'page');
  await console.files();
  t.is(tries, 2);
});

test('viewers share one report of the cache, one report runs at a time, and the next waits nine times as long as it took', async (t) => {
  let looks = 0;
  let answer = (): void => {};
  const report = () => new Promise<StatusReport>((resolve) => ((looks += 1), (answer = () => resolve(aStatusReport()))));
  const { console, clock, close } = aConsole(report);
  t.teardown(close);

  const [first, second] = [console.overview(), console.overview()];
  clock.advance(1_000);
  const third = console.overview();
  t.is(looks, 1);
  answer();
  t.is(await first, await second);
  t.is(await third, await first);

  clock.advance(8_999);
  t.is(await console.overview(), await first);
  clock.advance(1);
  void console.overview();
  t.is(looks, 2);
  answer();
});

function aConsole(report: () => Promise<StatusReport>, readFiles?: Parameters<typeof openConsole>[1]) {
  const clock = new ManualClock();
  const metrics = createMetrics({ processMetrics: false });
  const nobody = () => Promise.reject(new Error('nobody asks'));
  const freshness = { report, ofType: nobody, ofTypeLately: nobody };
  const parts = { cacheId: 'c-1', freshness, catalogue: new Catalogue([]), metrics, lastLines: new LastLines(clock), clock, log: silent };
  const console = openConsole(parts, readFiles);
  return { clock, console, close: () => console.close() };
}
