import { processorMs } from '../../support/fastest.js';
import { test } from '../../support/test.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { find, parseJsonPath } from '../../../src/json/json-path.js';

const object = {
  metadata: { name: 'one', labels: { region: 'eu', 'app.kubernetes.io/name': 'x' }, generation: 7 },
  spec: { list: ['a', 'b', 'c'], empty: [], zero: 0, no: false, nothing: null, 'dotted.key': 1, ['__proto__x']: 1 },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', at: 3 },
      { type: 'Synced', status: 'False', at: 5, message: 'a) b' },
    ],
  },
};

test('a path finds what Kubernetes finds', (t) => {
  const cases: [string, readonly unknown[]][] = [
    ['.metadata.name', ['one']],
    ['$.metadata.name', ['one']],
    ['.metadata.labels.region', ['eu']],
    [".metadata.labels['region']", ['eu']],
    ['.metadata.labels.app\\.kubernetes\\.io/name', ['x']],
    [".metadata.labels['app\\.kubernetes\\.io/name']", ['x']],
    [".metadata.labels['app.kubernetes.io/name']", []],
    ['.spec.dotted\\.key', [1]],
    ['.spec.zero', [0]],
    ['.spec.no', [false]],
    ['.spec.nothing', [null]],
    ['.spec.nothing.more', []],
    ['.spec.missing.more', []],
    ['.spec.list[0]', ['a']],
    ['.spec.list[-1]', ['c']],
    ['.spec.list[3]', []],
    ['.spec.list[-4]', []],
    ['.spec.list[1:]', ['b', 'c']],
    ['.spec.list[:2]', ['a', 'b']],
    ['.spec.list[0:3:2]', ['a', 'c']],
    ['.spec.list[:-1]', ['a', 'b']],
    ['.spec.list[*]', ['a', 'b', 'c']],
    ['.spec.list.*', ['a', 'b', 'c']],
    ['.spec.empty[*]', []],
    ['.spec.list.name', []],
    ['.spec.list.length', []],
    ['.metadata.name.length', []],
    ['.metadata.name[0]', []],
    ['.metadata.labels.*', ['eu', 'x']],
    ['.status.conditions[*].type', ['Ready', 'Synced']],
    ['.status.conditions[?(@.type=="Ready")].status', ['True']],
    [".status.conditions[?(@.type=='Synced')].status", ['False']],
    ['.status.conditions[?(@.type == "Ready")].status', ['True']],
    ['.status.conditions[?(@.type!="Ready")].status', ['False']],
    ['.status.conditions[?(@.type=="None")].status', []],
    ['.status.conditions[?(@.message)].type', ['Synced']],
    ['.status.conditions[?(@.message=="a) b")].type', ['Synced']],
    ['.status.conditions[?(@.at>3)].type', ['Synced']],
    ['.status.conditions[?(@.at>=3)].type', ['Ready', 'Synced']],
    ['.status.conditions[?(@.at<4.5)].type', ['Ready']],
    ['.status.conditions[?(@.at<=5)].type', ['Ready', 'Synced']],
    ['.status.conditions[?(@.at=="3")].type', []],
    ['.status.conditions[?(@.at!="3")].type', []],
    ['.status.conditions[?(@.type==@.status)].type', []],
    ['.spec[?(@.type=="Ready")]', []],
    ['.__proto__', []],
    ['.constructor.name', []],
    ['.spec.__proto__.toString', []],
  ];
  for (const [text, found] of cases) {
    const path = parseJsonPath(text);
    t.truthy(path, text);
    if (path) t.deepEqual(find(path, object), found, text);
  }
});

test('a path finds an own member whose name is special in JavaScript', (t) => {
  t.deepEqual(find(parseJsonPath('.__proto__.x') ?? [], JSON.parse('{"__proto__":{"x":1}}')), [1]);
});

test('a path that is malformed, or outside the subset, is refused and not misread', (t) => {
  const refused = [
    'metadata',
    '.a[',
    '.a]',
    '.a[x]',
    '.a[?(@.b==)]',
    '.a[?(@.b="c")]',
    '.a[?()]',
    '.a[?(@.b=="c"].d',
    '.a..b',
    '..a',
    '.a[0,1]',
    '.a b',
    '.a[::0]',
    '{.a}',
    '.',
    '.a.',
  ];
  for (const text of refused) t.is(parseJsonPath(text), undefined, text);
});

test('every column of a built-in type has a supported path', (t) => {
  for (const { versions } of kcpTypes) {
    for (const { columns } of versions) for (const { jsonPath } of columns) t.truthy(parseJsonPath(jsonPath), jsonPath);
  }
});

test('a hostile path takes time in proportion to its length at most', (t) => {
  const startedAt = processorMs();

  for (const text of [`.a[?(${'"'.repeat(50_000)}`, `.${'\\'.repeat(50_001)}`, `.a[?(${'('.repeat(50_000)}`, `['${'a'.repeat(50_000)}`])
    parseJsonPath(text);

  t.true(processorMs() - startedAt < 500);
});
