/**
 * Tests that the files of deploy/ use only options, variables and metrics that exist. It also
 * checks what else can be checked of them without a cluster.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { documentedTags, readsAsVersion, tagsIn } from '../support/documented-tags.js';
import { test } from '../support/test.js';
import { parseAllDocuments } from 'yaml';
import * as commandOptions from '../../src/config/options/command-options.js';
import { environmentName, type CommandOption } from '../../src/config/options/option.js';
import { configFileOption, options } from '../../src/config/options/options.js';
import { agentMetricTable, metricTable } from '../../src/diagnostics/metric-table.js';
import { findProjectRoot } from './sources.js';

const root = join(findProjectRoot(), 'deploy');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  (path) => /[\w@]\.\w+$/.test(path) || path === 'Containerfile',
);
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const known = [
  configFileOption,
  ...Object.values<CommandOption<unknown>>(options),
  ...Object.values(commandOptions).flatMap((table) => Object.values<CommandOption<unknown>>(table)),
];
/** Labels that Prometheus adds. */
const labelsOfScrapes = ['instance', 'job', 'le'];
const metricsOfOthers = ['up', 'process_resident_memory_bytes', 'process_start_time_seconds'];

/**
 * The metrics of a PromQL expression that do not exist, and the labels that its metrics do not
 * have.
 */
function unknownIn(expression: string): readonly string[] {
  const names = [...expression.matchAll(/\b(?:strata|process|nodejs)_\w+|\bup\b/g)].map(([name]) => name.replace(/_bucket$/, ''));
  const metrics = [...Object.values(metricTable), ...Object.values(agentMetricTable)];
  const declared = names.map((name) => metrics.find((metric) => metric.name === name));
  const labels: readonly string[] = [...labelsOfScrapes, ...declared.flatMap((metric) => metric?.labels ?? [])];
  const used = [
    ...[...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/)),
    ...[...expression.matchAll(/[{,]\s*(\w+)\s*=/g)].map(([, label = '']) => label),
  ];
  return [
    ...names.filter((name, i) => declared[i] === undefined && !metricsOfOthers.includes(name)),
    ...used.filter((label) => !labels.includes(label)),
  ];
}

/** Every text under a member of that name, at any depth. */
function textsUnder(value: unknown, member: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === member && typeof inner === 'string' ? [inner] : textsUnder(inner, member),
  );
}

test('every flag and variable of a file in deploy/ exists', (t) => {
  const flags = new Set(known.map(({ flag }) => flag));
  const variables = new Set(known.map(environmentName));
  let found = 0;

  for (const path of files.filter((file) => /Containerfile|\.service$|helm\/strata\/(?:templates|examples|values\.yaml)/.test(file))) {
    const lines = textOf(path).split('\n');
    for (const line of lines.filter((each) => /^ExecStart=|^CMD|"--|\[--|^\s+- --/.test(each)))
      for (const [, flag = ''] of line.matchAll(/--([a-z0-9-]+)/g)) {
        found += 1;
        t.true(flags.has(flag), `${path}: --${flag}`);
      }
    for (const [variable] of textOf(path).matchAll(/STRATA_[A-Z_]+/g)) t.true(variables.has(variable), `${path}: ${variable}`);
  }

  t.true(found > 20, `${found} flags`);
});

test('the image has a link for each command of the package, which kcp-operator and kcp’s charts call', (t) => {
  const [, called = ''] =
    / for each in (.*?); do .*; ln -s \/usr\/local\/bin\/\$each \/made\/\$each; done$/ms.exec(textOf('Containerfile')) ?? [];
  const { bin } = JSON.parse(readFileSync(join(findProjectRoot(), 'package.json'), 'utf8')) as { bin: Record<string, string> };
  t.deepEqual(called.split(' ').toSorted(), Object.keys(bin).toSorted());
});

test('the tag of the image is the same everywhere, and cannot be read as a version of kcp', (t) => {
  const { version } = JSON.parse(readFileSync(join(findProjectRoot(), 'package.json'), 'utf8')) as { version: string };
  const tags = documentedTags();

  t.deepEqual(
    ['docs/kcp.md', 'docs/kubernetes.md', 'deploy/helm/strata/examples/everything.yaml'].filter((file) => !tags.has(file)),
    [],
  );
  for (const [file, named] of tags) t.deepEqual([...new Set(named)], [`strata-${version}`], file);
  t.false(readsAsVersion(`strata-${version}`));
  t.deepEqual(tagsIn('image: {tag: 0.1.0-strata}\n  newTag: "v1"\n  tag: 2 https://strata:6443 registry.example/strata:0.2.0'), [
    '0.1.0-strata',
    'v1',
    '2',
    '0.2.0',
  ]);
});

test('each unit runs as the user strata, which owns keys and store and exists while the unit is stopped', (t) => {
  const units = files.filter((file) => file.endsWith('.service'));

  t.is(units.length, 2);
  for (const path of units) {
    t.regex(textOf(path), /^User=strata$/m, path);
    t.notRegex(textOf(path), /^(?:DynamicUser|LoadCredential)=/m, path);
  }
});

test('every metric and label that an alert or a chart names exists', (t) => {
  const [alerts] = parseAllDocuments(textOf('helm/strata/monitoring/alerts.yaml')).map((document) => document.toJS() as unknown);
  const expressions = [...textsUnder(alerts, 'expr'), ...textsUnder(JSON.parse(textOf('helm/strata/monitoring/grafana.json')), 'expr')];

  t.true(expressions.length > 20, `${expressions.length} expressions`);
  for (const expression of expressions) t.deepEqual(unknownIn(expression), [], expression);
});

test('a metric or a label that does not exist is found', (t) => {
  t.deepEqual(unknownIn('sum by (shard) (rate(strata_requests_total{code="500", nope="1"}[5m])) / strata_nope'), [
    'strata_nope',
    'shard',
    'nope',
  ]);
});

test('every YAML file of deploy/ except the templates parses without an error', (t) => {
  const written = files.filter((file) => file.endsWith('.yaml') && !file.includes('/templates/'));

  t.true(written.length > 10, written.join());
  for (const path of written) for (const { errors } of parseAllDocuments(textOf(path))) t.deepEqual(errors, [], path);
});
