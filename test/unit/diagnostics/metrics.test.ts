import { test } from '../../support/test.js';
import { agentMetricTable, frontDoorMetricTable, metricTable } from '../../../src/diagnostics/metric-table.js';
import { createMetrics, createMetricsOf } from '../../../src/diagnostics/metrics.js';

test('every declared metric is rendered with its help from the start', async (t) => {
  for (const table of [metricTable, agentMetricTable, frontDoorMetricTable]) {
    const text = await createMetricsOf(table, { processMetrics: false }).render();
    for (const { name, help } of Object.values(table)) t.true(text.includes(`# HELP ${name} ${help}\n`), name);
  }
});

test('names follow the rules of Prometheus: a prefix, totals for counters, base units', (t) => {
  for (const { name, kind } of [...Object.values(metricTable), ...Object.values(agentMetricTable)]) {
    t.regex(name, /^strata_[a-z0-9_]+$/);
    t.is(name.endsWith('_total'), kind === 'counter', name);
    t.notRegex(name, /_ms$/);
  }
});

test('every value that is counted, set or observed is rendered', async (t) => {
  const metrics = createMetrics({ processMetrics: false });

  metrics.requests.add(2, { verb: 'get', code: '200' });
  metrics.requests.add(1, { verb: 'get', code: '200' });
  metrics.eventsSent.add(512);
  metrics.openWatches.add(3);
  metrics.openWatches.add(-1);
  metrics.publishedRevision.set(41);
  metrics.commitSeconds.observe(0.004);
  metrics.beforeRender(() => metrics.publishedRevision.set(42));
  const text = await metrics.render();

  t.regex(text, /^strata_requests_total\{verb="get",code="200"\} 3$/m);
  t.regex(text, /^strata_watch_events_total 512$/m);
  t.regex(text, /^strata_watches_open 2$/m);
  t.regex(text, /^strata_published_revision 42$/m);
  t.regex(text, /^strata_commit_duration_seconds_bucket\{le="0.005"\} 1$/m);
  t.regex(text, /^strata_commits_total 0$/m);
});

test('two servers in one process count separately', async (t) => {
  const [amber, birch] = [createMetrics({ processMetrics: false }), createMetrics({ processMetrics: false })];

  amber.commits.add(1);

  t.regex(await birch.render(), /^strata_commits_total 0$/m);
});

test('the metrics of the process itself are rendered only on request', async (t) => {
  const metrics = createMetrics({ processMetrics: true });

  t.regex(await metrics.render(), /^process_cpu_seconds_total /m);
  t.regex(metrics.contentType, /^text\/plain/);
});
