import { readFileSync } from 'node:fs';
import { test } from '../../support/test.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import type { Column, ServedType } from '../../../src/domain/catalogue/catalogue.js';
import { cells, columnDefinitions, columnsOf, formatAge, parseIncludeObject, type Cell } from '../../../src/web/formats/table.js';
import { projectFile } from '../../support/project.js';

const now = Date.parse('2026-11-21T00:40:56Z');

function builtIn(resource: string): ServedType {
  const type = kcpTypes.find((each) => each.resource === resource);
  if (type === undefined) throw new Error(`no type ${resource}`);
  return type;
}

function onePlace(type: ServedType, version: string): readonly Column[] {
  return columnsOf(type, version, { shard: false, cluster: false });
}

function withColumn(type: string, jsonPath = '.spec.x'): ServedType {
  return { ...builtIn('shards'), versions: [{ name: 'v1', columns: [{ name: 'X', type, jsonPath }] }] };
}

test('columns and cells equal those of upstream', (t) => {
  const lines = readFileSync(projectFile('test/clients/golden/basics.upstream.jsonl'), 'utf8')
    .split('\n')
    .filter((text) => text !== '');
  const steps = lines.map((line) => JSON.parse(line)).filter(({ title }) => title === 'watch table' || title.startsWith('table'));
  t.is(steps.length, 4);
  for (const { title, answer } of steps) {
    const table = title === 'watch table' ? answer[0].object : answer;
    const rows = table.rows.filter((row: { object: unknown }) => row.object !== null);

    t.deepEqual(columnDefinitions(onePlace(builtIn('apiexports'), 'v1alpha2')), table.columnDefinitions, title);
    for (const row of rows) t.deepEqual(cells(onePlace(builtIn('apiexports'), 'v1alpha2'), row.object, now), row.cells, title);
  }
});

test('a type without columns shows Name and Age, and so does an unknown version', (t) => {
  for (const version of ['v1', 'v9']) {
    const definitions = columnDefinitions(onePlace(builtIn('clusterroles'), version));
    t.deepEqual(
      definitions.map(({ name, type }) => [name, type]),
      [
        ['Name', 'string'],
        ['Age', 'date'],
      ],
    );
    t.regex(definitions[1]?.description ?? '', /^CreationTimestamp is a timestamp/);
    const object = { metadata: { name: 'system:x', creationTimestamp: '2026-11-21T00:35:44Z' } };
    t.deepEqual(cells(onePlace(builtIn('clusterroles'), version), object, now), ['system:x', '5m12s']);
  }
});

test('columns have their descriptions, priority and format', (t) => {
  const type: ServedType = {
    ...builtIn('shards'),
    versions: [
      { name: 'v1', columns: [{ name: 'X', type: 'integer', format: 'int32', priority: 1, description: 'what', jsonPath: '.x' }] },
    ],
  };

  t.deepEqual(columnDefinitions(onePlace(type, 'v1'))[1], {
    name: 'X',
    type: 'integer',
    format: 'int32',
    description: 'what',
    priority: 1,
  });
  t.deepEqual(
    columnDefinitions(onePlace(builtIn('shards'), 'v1alpha1')).map(({ name }) => name),
    ['Name', 'Region', 'URL', 'External URL', 'Age'],
  );
});

test('a filtered column shows the matching condition', (t) => {
  const object = {
    metadata: { name: 'one' },
    status: {
      conditions: [
        { type: 'Other', status: 'x' },
        { type: 'VirtualWorkspaceURLsReady', status: 'True' },
      ],
    },
  };

  t.deepEqual(cells(onePlace(builtIn('apiexports'), 'v1alpha1'), object, now), ['one', null, 'True']);
});

test('a cell has the type of its column or is null', (t) => {
  const cases: [string, unknown, Cell][] = [
    ['string', 'text', 'text'],
    ['string', 5, '5'],
    ['string', true, 'true'],
    ['string', null, null],
    ['string', undefined, null],
    ['string', { a: [1] }, '{"a":[1]}'],
    ['integer', 5, 5],
    ['integer', 5.9, 5],
    ['integer', -5.9, -5],
    ['integer', '5', null],
    ['number', 5.5, 5.5],
    ['number', '5.5', null],
    ['boolean', false, false],
    ['boolean', 'false', null],
    ['date', 5, null],
    ['date', '', '<unknown>'],
    ['date', '0001-01-01T00:00:00Z', '<unknown>'],
    ['date', 'yesterday', '<invalid>'],
    ['date', '2026', '<invalid>'],
    ['date', '2026-11-21T00:40:00Z', '56s'],
    ['date', '2026-11-21T01:40:00+01:00', '56s'],
    ['date', '2026-11-21T00:40:00.123456789Z', '55s'],
    ['object', {}, null],
  ];
  for (const [type, x, cell] of cases)
    t.deepEqual(
      cells(onePlace(withColumn(type), 'v1'), { metadata: { name: 'n' }, spec: { x } }, now),
      ['n', cell],
      `${type} ${String(x)}`,
    );
});

test('of several values a cell shows the first; a value that is no object has no cells', (t) => {
  t.deepEqual(cells(onePlace(withColumn('string', '.spec.x[*]'), 'v1'), { metadata: { name: 'n' }, spec: { x: ['a', 'b'] } }, now), [
    'n',
    'a',
  ]);
  t.deepEqual(cells(onePlace(withColumn('string', '..x'), 'v1'), { metadata: { name: 'n' }, spec: { x: 1 } }, now), ['n', null]);
  for (const value of [null, undefined, 7, [], {}]) t.deepEqual(cells(onePlace(withColumn('string'), 'v1'), value, now), [null, null]);
});

test('ages are formatted as in Kubernetes', (t) => {
  const second = 1000;
  const minute = 60 * second;
  const hour = 60 * minute;
  const day = 24 * hour;
  const year = 365 * day;
  const cases: [number, string][] = [
    [-2 * second, '<invalid>'],
    [-1.9 * second, '0s'],
    [-0.5 * second, '0s'],
    [0, '0s'],
    [119.9 * second, '119s'],
    [2 * minute, '2m'],
    [2 * minute + second, '2m1s'],
    [10 * minute - second, '9m59s'],
    [10 * minute + 30 * second, '10m'],
    [3 * hour - second, '179m'],
    [3 * hour, '3h'],
    [3 * hour + minute, '3h1m'],
    [8 * hour + 10 * minute, '8h'],
    [48 * hour - second, '47h'],
    [2 * day, '2d'],
    [2 * day + 4 * hour, '2d4h'],
    [8 * day + 4 * hour, '8d'],
    [2 * year - second, '729d'],
    [2 * year, '2y'],
    [6 * year + 324 * day, '6y324d'],
    [8 * year - second, '7y364d'],
    [8 * year + 300 * day, '8y'],
    [50 * year, '50y'],
  ];
  for (const [durationMs, text] of cases) t.is(formatAge(durationMs), text);
});

test('includeObject is None, Metadata or Object, and Metadata by default', (t) => {
  const cases = [
    [undefined, 'Metadata'],
    ['', 'Metadata'],
    ['Metadata', 'Metadata'],
    ['Object', 'Object'],
    ['None', 'None'],
    ['none', undefined],
    ['All', undefined],
  ] as const;
  for (const [text, answer] of cases) t.is(parseIncludeObject(text), answer);
});
