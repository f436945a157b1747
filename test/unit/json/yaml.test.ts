import { processorMs } from '../../support/fastest.js';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseJson } from '../../../src/json/json-parser.js';
import { equalJson, formatJson } from '../../../src/json/json-tree.js';
import type { JsonTree } from '../../../src/json/json-tree.js';
import { mustParse } from '../../../src/domain/parsed.js';
import { formatYaml, parseYaml } from '../../../src/json/yaml.js';
import { anyCharacter } from '../../support/any-character.js';

const tree = (text: string): JsonTree => mustParse(parseJson(text));

/** The JSON of a YAML text, or the reason of its refusal. */
function jsonOf(text: string): string {
  const result = parseYaml(text);
  return result.kind === 'parsed' ? formatJson(result.value) : `${result.refusal.reason}: ${result.refusal.message}`;
}

test('scalars have the values that sigs.k8s.io/yaml gives them, and numbers keep their digits', (t) => {
  const cases: [string, string][] = [
    ['5', '5'],
    ['+5', '5'],
    ['-5', '-5'],
    ['1.0', '1.0'],
    ['1e3', '1e3'],
    ['.5', '0.5'],
    ['5.', '5'],
    ['9007199254740993', '9007199254740993'],
    ['123456789012345678901234567890', '123456789012345678901234567890'],
    ['0x1F', '31'],
    ['0o17', '15'],
    ['017', '15'],
    ['089', '89'],
    ['0b11', '3'],
    ['-0b11', '-3'],
    ['1_000', '1000'],
    ['true', 'true'],
    ['True', 'true'],
    ['tRue', '"tRue"'],
    ['yes', 'true'],
    ['off', 'false'],
    ['~', 'null'],
    ['null', 'null'],
    ['', 'null'],
    ['"5"', '"5"'],
    ["'true'", '"true"'],
    ['2020-01-01', '"2020-01-01"'],
    ['190:20:30', '"190:20:30"'],
    ['1.2.3', '"1.2.3"'],
    ['-', 'BadRequest'],
    ['.inf', 'BadRequest'],
    ['.nan', 'BadRequest'],
    ['|\n  x\n  y\n', '"x\\ny\\n"'],
    ['>-\n  x\n  y', '"x y"'],
    ['!!str 5', '"5"'],
    ['!!int 5', '5'],
    ['!!float 5', '5'],
    ['!!int x', 'BadRequest'],
    ['!!binary aGk=', 'BadRequest'],
    ['!foo x', 'BadRequest'],
    ['!!timestamp 2020-01-01', 'BadRequest'],
  ];
  for (const [scalar, expected] of cases) {
    const actual = jsonOf(`a: ${scalar}`);
    if (expected === 'BadRequest') t.true(actual.startsWith('BadRequest: ') || actual === '{"a":[null]}', `${scalar}: ${actual}`);
    else t.is(actual, `{"a":${expected}}`, scalar);
  }
});

test('collections, keys, anchors and merges become JSON', (t) => {
  const cases: [string, string][] = [
    ['', 'null'],
    ['# nothing', 'null'],
    ['a:\n- 1\n- b: 2\n  c: [x, {p: z}]', '{"a":[1,{"b":2,"c":["x",{"p":"z"}]}]}'],
    ['{"a": [1.0, "\\u0041"]}', '{"a":[1.0,"A"]}'],
    ['1: a\ntrue: b\n1.5: c', '{"1":"a","true":"b","1.5":"c"}'],
    ['__proto__: {x: 1}\nconstructor: 2', '{"__proto__":{"x":1},"constructor":2}'],
    ['a: 1\na: 2', '{"a":2}'],
    ['a: &x [1]\nb: *x', '{"a":[1],"b":[1]}'],
    ['a: &x 1\nb: &x 2\nc: *x', '{"a":1,"b":2,"c":2}'],
    ['a: &x {p: 1, q: 2}\nb: {q: 3, <<: *x}', '{"a":{"p":1,"q":2},"b":{"q":3,"p":1}}'],
    ['? a\n: b', '{"a":"b"}'],
    ['--- \na: 1\n...\n', '{"a":1}'],
  ];
  for (const [text, expected] of cases) t.is(jsonOf(text), expected, text);
});

test('lines end where Go ends them', (t) => {
  const cases: [string, string][] = [
    ['a: 1 # one\r\nb: 2\r\n', '{"a":1,"b":2}'],
    ['\ufeffa: 1\n', '{"a":1}'],
    ['a: "x\\r\\N\\L\\P\\ufeff"', '{"a":"x\\r\u0085\u2028\u2029\ufeff"}'],
    ['a: |\r\n  x\r\n  y\r\n', '{"a":"x\\ny\\n"}'],
    ['a: |\n  x', '{"a":"x"}'],
    ['a: >\n  x\n  y', '{"a":"x y"}'],
    ['a: |+\n  x\n\n  ', '{"a":"x\\n\\n"}'],
    ['a: |\n  x\n  ', '{"a":"x\\n"}'],
    ['a: |\n', '{"a":""}'],
    ['? |\n  x', '{"x":null}'],
  ];
  for (const [text, expected] of cases) t.is(jsonOf(text), expected, text);
});

test('YAML that JSON cannot express is refused with the reason', (t) => {
  for (const text of [
    'a: *nope',
    'a: &x [*x]',
    'a: [1',
    'a: b: c',
    '? [a]\n: 1',
    '~: 1',
    'a: 1\n---\nb: 2',
    '<<: 1',
    '\ta: 1',
    '"\\q"',
    '@a',
    '%FOO\n---\na: 1',
    '%dryRun: [All]\n---\n{}',
    'a: "\\ud800"',
    'a: "x\u0007"',
    'a: x\u007f',
    "'\u0001': 1",
    '"\\ud800": 1',
    'a: \ufffe',
    'a: 1 # one\rb: 2\n',
    'a: 1\r',
    'a: 1\n\rb: 2\n',
    'a: "x\ry"',
    'a: 1\r\rb: 2',
    'a: 1 # one\u0085b: 2\n',
    'a: 1\u2028b: 2\n',
    'a: 1 # one\u2029b: 2\n',
    "a: 'x\u2028y'",
    '{"a": "x\u2029y"}',
    'a: |\n  x\u0085  y\n',
    'a: 1\n\ufeffb: 2\n',
    'a: \ufeff1\n',
    '\ufeff\ufeffa: 1\n',
    '? a\n- b\n',
    'a: 1\n? b\n- c: 2\nd: 3\n',
    '? a\n # c\n "\n',
    'x: "a\\"\ndryRun: [All]\ny: b"\n',
    "x: 'a''\ndryRun: [All]\ny: b'\n",
    "k: 'it''\n",
    "- 'it''\n- b\n",
    "'k'': 1\nb: 2\n",
  ]) {
    t.regex(jsonOf(text), /^BadRequest: error converting YAML to JSON: ./, text);
  }
});

test('a text that nests too deep is refused before the library fails on it', (t) => {
  const deep: [string, (depth: number) => string][] = [
    ['block sequences', (depth) => '- '.repeat(depth) + 'a'],
    ['flow sequences', (depth) => '['.repeat(depth) + ']'.repeat(depth)],
    ['flow maps', (depth) => '{a: '.repeat(depth) + '1' + '}'.repeat(depth)],
    ['block maps', (depth) => Array.from({ length: depth }, (_, index) => `${' '.repeat(index)}a:`).join('\n')],
    ['explicit keys', (depth) => '? '.repeat(depth) + 'a'],
  ];
  for (const [title, text] of deep) {
    t.regex(jsonOf(text(5_000)), /exceeded max depth/, title);
    t.notRegex(jsonOf(text(150)), /exceeded max depth/, title);
  }
});

test('a text that expands exponentially (a billion laughs) is refused early', (t) => {
  const lines = ['a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]'];
  for (let level = 1; level < 20; level++)
    lines.push(
      `a${level}: &a${level} [${Array(9)
        .fill(`*a${level - 1}`)
        .join()}]`,
    );

  t.regex(jsonOf(lines.join('\n')), /excessive aliasing/);
});

test('a map of very many keys does not take quadratic time', (t) => {
  const started = processorMs();

  jsonOf(Array.from({ length: 30_000 }, (_, index) => `key${index}: x`).join('\n'));

  t.true(processorMs() - started < 5_000);
});

test('an object is written as upstream writes it: two blanks a level, sequences under their key', (t) => {
  t.is(
    formatYaml(
      tree(
        '{"apiVersion":"v1","metadata":{"annotations":{"kcp.io/path":"root:org"},"managedFields":[{"a":1,"b":[[1,2],[]]},{}]},"n":9007199254740993}',
      ),
    ),
    [
      'apiVersion: v1',
      'metadata:',
      '  annotations:',
      '    kcp.io/path: root:org',
      '  managedFields:',
      '  - a: 1',
      '    b:',
      '    - - 1',
      '      - 2',
      '    - []',
      '  - {}',
      '"n": 9007199254740993',
      '',
    ].join('\n'),
  );
});

test('strings that look like values of other types are quoted', (t) => {
  for (const text of [
    '5',
    '1.0',
    'true',
    'yes',
    'n',
    'null',
    '',
    '~',
    '2020-01-01',
    '- a',
    'a: b',
    'a #b',
    ' a',
    'a\nb',
    '*a',
    '&a',
    '!a',
    '0x1',
    '.5',
    '1_0',
    '<<',
    '---',
    '{',
    '%a',
    "it's",
    'a:',
    '=',
  ]) {
    t.is(formatYaml(text), `${JSON.stringify(text)}\n`, text);
  }
  for (const text of ['abc', 'root:org:team', 'kcp.io/v1', 'two words', 'User', 'system:masters']) t.is(formatYaml(text), `${text}\n`);
});

test('long keys, unprintable characters and deep trees are read back equal', (t) => {
  const long = 'k'.repeat(3000);
  const deep = '['.repeat(150) + '{"a":[1]}' + ']'.repeat(150);
  for (const text of [`{"${long}":1,"a":{"${long}":{"b":[{"${long}":2}]}}}`, '{"\\u0085\\u2028\\ufeff":"\\u007f\\u0000\\u2029"}', deep]) {
    t.is(jsonOf(formatYaml(tree(text))), formatJson(tree(text)));
  }
});

test('a long key is written with a question mark at any depth, because Go refuses it otherwise', (t) => {
  const at = (depth: number, text: string): string => formatYaml(tree(`${'['.repeat(depth)}${text}${']'.repeat(depth)}`));
  for (const [key, isLong] of [
    ['k'.repeat(900), false],
    ['k'.repeat(1_025), true],
    ['\\u007f'.repeat(300), true],
    ['\\"'.repeat(600), true],
    [`${'k'.repeat(600)}\\":${'k'.repeat(600)}`, true],
    [`:${'\\\\'.repeat(600)}`, true],
  ] as const) {
    for (const depth of [1, 63, 64, 65, 100]) {
      const text = `{"a":"v",":":"${key}","${key}":{"${key}":["${key}",{}]}}`;
      t.is((at(depth, text).match(/\? "/g) ?? []).length, isLong ? 2 : 0, `${key.slice(0, 10)} at ${depth}`);
      t.is(jsonOf(at(depth, text)), formatJson(tree(`${'['.repeat(depth)}${text}${']'.repeat(depth)}`)));
    }
  }
});

test('a tree as deep as a body may be can be written', (t) => {
  t.true(formatYaml(tree('['.repeat(10_000) + ']'.repeat(10_000))).length > 10_000);
});

test('written YAML reads back as the same tree', (t) => {
  const text = fc.oneof(fc.string(), fc.constantFrom('yes', '1', 'a: b', '\n', ' x', '...', '"'), fc.string({ unit: anyCharacter }));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.oneof(text, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(text, tie('value'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(value, (each) => {
      const original = tree(JSON.stringify(each));
      const result = parseYaml(formatYaml(original));
      t.true(result.kind === 'parsed' && equalJson(result.value, original), formatYaml(original));
    }),
    { numRuns: rounds(500) },
  );
});

test('junk that is no YAML is refused as a bad request and never throws', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[ab:\-?[\]{},&*!|>'"#%@` \n<0-9.]*$/)), (text) => {
      const result = parseYaml(text);
      t.true(result.kind === 'parsed' || result.refusal.reason === 'BadRequest', text);
    }),
    { numRuns: rounds(1000) },
  );
});
