/**
 * Runs every alert of the chart in Prometheus' own `promtool`. An alert must fire from the right
 * minute on, no earlier, with the right labels and summary, and must stay silent beside its
 * threshold. Prometheus ignores a missing metric without an error, so a real scrape must have the
 * metrics and labels of these tests. chart.test.ts checks that the chart installs these rules
 * unchanged.
 *
 * Needs `promtool`, or `go` to build one; skipped with a log line without them.
 */
import { readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import { parse } from 'yaml';
import { AgentProcess } from '../support/agent-process.js';
import { freePorts } from '../support/free-ports.js';
import { ShardStandIn } from '../support/shard-stand-in.js';
import { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';
import { test } from '../support/test.js';
import { alertCases, prometheusAdds, type AlertCase } from './alerts/alert-cases.js';
import { alertsFile, checkRules, promtool, testRules } from './alerts/promtool.js';

type Rule = Readonly<{ alert: string; expr: string; labels: Readonly<{ severity: string }>; annotations: Readonly<{ summary: string }> }>;

/** Prometheus makes these metrics itself. */
const metricsOfPrometheus = ['up'];
const labelsOfPrometheus = ['instance', 'job', 'pod'];
const withinMs = 60_000;
const minutesMax = 120;
const exportsType = 'apiexports.apis.kcp.io';

const { groups } = parse(readFileSync(alertsFile, 'utf8')) as Readonly<{ groups: readonly Readonly<{ rules: readonly Rule[] }>[] }>;
const rules = groups.flatMap((group) => group.rules);

test('every alert has series that fire it, and series that do not', (t) => {
  const names = rules.map(({ alert }) => alert);
  const tried = (fires: boolean): readonly string[] => [
    ...new Set(alertCases.filter((each) => (each.fires !== undefined) === fires).map(({ alert }) => alert)),
  ];

  t.deepEqual(tried(true), names);
  t.deepEqual(tried(false), names);
});

test('a server or an agent reports every metric that the alert cases use, with the same labels', async (t) => {
  const page = await scraped(t);
  const shapes = new Set([...page.matchAll(/^(\w+)(\{[^}]*\})? /gm)].map(([, name, labels]) => shapeOf(`${name}${labels ?? ''}`)));
  const missing = alertCases
    .flatMap(({ series }) => Object.keys(series))
    .filter((series) => !isOfPrometheus(series) && !shapes.has(shapeOf(series)));
  const selected = rules.flatMap(({ expr }) => [...expr.matchAll(/\w+\{[^}]+\}/g)].map(([selector]) => selector));

  t.deepEqual([...new Set(missing)], []);
  t.deepEqual(
    selected.filter((selector) => !isOfPrometheus(selector) && !page.includes(selector)),
    [],
  );
  t.deepEqual(
    ['strata_nope', 'strata_ready{nope="1"}', 'strata_slice_whole{shard="amber"}'].filter((series) => shapes.has(shapeOf(series))),
    [],
  );
});

test('each alert fires when it must, and no earlier, with the right labels and summary', async (t) => {
  const found = await promtool();
  if ('why' in found) {
    t.log(`SKIPPED: no promtool, and Go cannot build one: ${found.why}`);
    t.pass();
    return;
  }
  t.timeout(600_000);

  const checked = await checkRules(found);
  t.is(checked.code, 0, checked.stdout + checked.stderr);
  const tested = await testRules(found, alertCases.map(testOf));
  t.is(tested.code, 0, tested.stdout + tested.stderr);
  // Without the expected alerts each test must fail, so promtool does compare them.
  for (const { fires, ...silent } of alertCases)
    if (fires !== undefined) t.not((await testRules(found, [testOf(silent)])).code, 0, `${silent.alert}: ${silent.what}`);
});

/** One test in the format of `promtool test rules`. */
function testOf({ alert, what, series, fires }: AlertCase): unknown {
  const rule = rules.find((each) => each.alert === alert)!;
  const expected = fires && [
    {
      exp_labels: { ...fires.labels, severity: rule.labels.severity },
      exp_annotations: { summary: summaryOf(rule, fires.labels, fires.value) },
    },
  ];
  const { from = minutesMax, until: end = from + 1 } = fires ?? {};
  const isFiring = (minute: number): boolean => minute >= from && minute < end;
  const minutes =
    fires === undefined
      ? Array.from({ length: minutesMax + 1 }, (_, minute) => minute)
      : [from - 1, from, end - 1, ...(fires.until === undefined ? [] : [end])];
  return {
    name: `${alert}: ${what}`,
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: withLabelsOfPrometheus(name), values })),
    alert_rule_test: minutes
      .filter((minute) => minute >= 0)
      .map((minute) => ({
        eval_time: `${minute}m`,
        alertname: alert,
        exp_alerts: expected !== undefined && isFiring(minute) ? expected : [],
      })),
  };
}

/**
 * Throws for a label that the case does not have, because an operator would see a gap in the
 * summary.
 */
function summaryOf({ alert, annotations }: Rule, labels: Readonly<Record<string, string>>, value: number | undefined): string {
  return annotations.summary.replaceAll(/\{\{ \$(?:labels\.(\w+)|value) \}\}/g, (_, label: string | undefined) => {
    const text = label === undefined ? value?.toString() : labels[label];
    if (text === undefined) throw new Error(`${alert} has no ${label ?? 'value'} to say`);
    return text;
  });
}

function withLabelsOfPrometheus(series: string): string {
  const [, name = '', given = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? [];
  const added = Object.entries(prometheusAdds).filter(([label]) => !given.includes(`${label}="`));
  return `${name}{${[given, ...added.map(([label, value]) => `${label}="${value}"`)].filter((each) => each !== '').join()}}`;
}

function isOfPrometheus(series: string): boolean {
  return metricsOfPrometheus.includes(/^\w+/.exec(series)?.[0] ?? '');
}

/** The metric's name with the names of its own labels, without those that Prometheus adds. */
function shapeOf(series: string): string {
  const labels = [...series.matchAll(/[{,](\w+)="/g)].map(([, label = '']) => label).filter((label) => !labelsOfPrometheus.includes(label));
  return `${/^\w+/.exec(series)?.[0]} ${labels.toSorted().join()}`;
}

/** The metrics of a cache with a child and a shard, and of that shard's agent. */
async function scraped(t: ExecutionContext): Promise<string> {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  shard.store.put(exportsType, 'root', { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'one' }, spec: {} });
  const cache = await StrataProcess.start({ config: "children: {leaf: {accept: [{shards: ['*']}]}}" });
  t.teardown(() => cache[Symbol.asyncDispose]());
  const link = cache.authority.issue({ user: 'leaf', groups: ['strata'], uris: ['strata://cache/leaf'] });
  const leaf = await StrataProcess.start({
    authority: cache.authority,
    flags: [
      `--parent-urls=${cache.url}`,
      `--parent-ca-file=${cache.certificateFile}`,
      `--parent-cert-file=${link.certificateFile}`,
      `--parent-key-file=${link.keyFile}`,
    ],
  });
  t.teardown(() => leaf[Symbol.asyncDispose]());
  const [port] = await freePorts(1);
  const flags = [`--metrics-bind-address=127.0.0.1:${port}`];
  const agent = await AgentProcess.start(cache, { shard: 'amber', kubeconfig: shard.kubeconfig, flags });
  t.teardown(() => agent[Symbol.asyncDispose]());
  const pageOfAgent = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const pageOfCache = async (): Promise<string> => (await cache.client().raw('GET', '/metrics')).text;

  await until(async () => (await pageOfAgent().catch(() => '')).includes('strata_agent_objects_pushed_total 1'), withinMs);
  await until(async () => (await pageOfCache()).includes('strata_slice_whole{shard="amber"'), withinMs);
  return `${await pageOfCache()}\n${await pageOfAgent()}`;
}
