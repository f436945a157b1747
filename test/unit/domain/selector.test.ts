import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { mustParse } from '../../../src/domain/parsed.js';
import type { Parsed } from '../../../src/domain/parsed.js';
import {
  formatSelector,
  isEverything,
  matchesLabels,
  meetsSelector,
  parseFieldSelector,
  parseLabelSelector,
} from '../../../src/domain/syntax/selector.js';
import { fastestMs } from '../../support/fastest.js';

const labels = (object: Record<string, string>): ReadonlyMap<string, string> => new Map(Object.entries(object));
const selects = (selector: string, object: Record<string, string>): boolean =>
  matchesLabels(mustParse(parseLabelSelector(selector)), labels(object));
const refusal = (result: Parsed<unknown>): string => {
  if (result.kind === 'parsed') return 'parsed';
  return `${result.refusal.reason}: ${result.refusal.message}`;
};

test('each operator selects as apimachinery documents it', (t) => {
  const cases: [string, Record<string, string>, boolean][] = [
    ['', {}, true],
    ['app=x', { app: 'x' }, true],
    ['app == x', { app: 'y' }, false],
    ['app=x', {}, false],
    ['app=', { app: '' }, true],
    ['app!=x', {}, true],
    ['app!=x', { app: 'x' }, false],
    ['app in (x, y)', { app: 'y' }, true],
    ['app in (x,y)', {}, false],
    ['app in (,x)', { app: '' }, true],
    ['app in ()', { app: '' }, true],
    ['app notin (x,y)', {}, true],
    ['app notin (x,y)', { app: 'x' }, false],
    ['app', { app: '' }, true],
    ['!app', {}, true],
    ['!app', { app: 'x' }, false],
    ['n>5', { n: '6' }, true],
    ['n>5', { n: '5' }, false],
    ['n<5', { n: '-7' }, true],
    ['n<5', { n: 'many' }, false],
    ['n<5', { n: '99999999999999999999' }, false],
    ['n<5', {}, false],
    ['in in (in,notin)', { in: 'notin' }, true],
    ['in', { in: 'x' }, true],
    ['app=x,tier!=gold', { app: 'x', tier: 'silver' }, true],
    ['kcp.io/path=a.b_c-d', { 'kcp.io/path': 'a.b_c-d' }, true],
    ['constructor', {}, false],
    [' a\t=\r\n1 , b ', { a: '1', b: '' }, true],
  ];
  for (const [selector, object, expected] of cases) t.is(selects(selector, object), expected, `${selector} on ${JSON.stringify(object)}`);
});

test('bad label selectors are refused in the words of labels.Parse', (t) => {
  const cases: [string, string][] = [
    ['===', "found '==', expected: !, identifier, or 'end of string'"],
    [',a', "found ',', expected: !, identifier, or 'end of string'"],
    ['a,', "found '', expected: identifier after ','"],
    ['a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['!a=1', "found '=', expected: ',' or 'end of string'"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['a in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
    ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['a in (b,(', "unable to parse requirement: found '(', expected: ',', or identifier"],
    ['a==(', "unable to parse requirement: found '(', expected: identifier"],
    ['a>x', `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`],
  ];
  for (const [selector, message] of cases) t.is(refusal(parseLabelSelector(selector)), `BadRequest: ${message}`, selector);

  t.regex(refusal(parseLabelSelector('-a')), /unable to parse requirement: <nil>: Invalid value: "-a": name part must consist/);
  t.regex(refusal(parseLabelSelector('a=-b')), /unable to parse requirement: values\[0\]\[a\]: Invalid value: "-b": a valid label must/);
  t.regex(refusal(parseLabelSelector('a in (-b,-c)')), /: \[values\[0\]\[a\]: .*, values\[1\]\[a\]: .*\]$/);
});

test('field selectors support names and namespaces, with escapes', (t) => {
  t.deepEqual(mustParse(parseFieldSelector('metadata.name=one,metadata.namespace!=a\\,b\\=\\\\')), [
    { field: 'metadata.name', kind: 'is', value: 'one' },
    { field: 'metadata.namespace', kind: 'is not', value: 'a,b=\\' },
  ]);
  t.deepEqual(mustParse(parseFieldSelector(',,')), []);
  t.deepEqual(mustParse(parseFieldSelector('metadata.name==')), [{ field: 'metadata.name', kind: 'is', value: '' }]);
});

test('bad field selectors are refused in the words of fields.ParseSelector', (t) => {
  const cases: [string, string][] = [
    ['spec.n=1', 'field label not supported: spec.n'],
    ['=1', 'field label not supported: '],
    ['!a!=1', 'field label not supported: !a'],
    ['name', "invalid selector: 'name'; can't understand 'name'"],
    ['metadata.name=a=b', 'invalid field selector: unescaped character in value: 61'],
    ['metadata.name=\\x', 'invalid field selector: invalid escape sequence: \\x'],
    ['metadata.name=a\\', 'invalid field selector: invalid escape sequence: \\'],
  ];
  for (const [selector, message] of cases) t.is(refusal(parseFieldSelector(selector)), `BadRequest: ${message}`, selector);
});

test('an object must match both selectors', (t) => {
  const selector = selectorOf('app=x', 'metadata.name=one,metadata.namespace!=other');
  const object = { name: 'one', namespace: '', labels: labels({ app: 'x' }) };

  t.true(meetsSelector(selector, object));
  t.false(meetsSelector(selector, { ...object, name: 'two' }));
  t.false(meetsSelector(selector, { ...object, namespace: 'other' }));
  t.false(meetsSelector(selector, { ...object, labels: labels({}) }));
});

test('selectors with the same terms have the same text, and others have different texts', (t) => {
  const text = (labelText: string, fieldText = ''): string => formatSelector(selectorOf(labelText, fieldText));

  t.is(text('b,a in (y,x),a==1'), text('a=1, a in (x,y,x) ,b,b'));
  t.is(text('', 'metadata.name=a,metadata.namespace=b'), text('', 'metadata.namespace==b,metadata.name=a'));
  t.not(text('a=1'), text('a!=1'));
  t.not(text('a'), text('a='));
  t.not(text('', 'metadata.name=a\\,metadata.name=b'.replace('=b', '\\=b')), text('', 'metadata.name=a,metadata.name=b'));
  t.true(isEverything(selectorOf('', '')));
  t.false(isEverything(selectorOf('a', '')));
});

const key = fc.constantFrom('a', 'b', 'in', 'kcp.io/path');
const value = fc.constantFrom('', 'x', 'y', '1', '2', 'notin');
const term = fc.oneof(
  fc.record({ operator: fc.constantFrom('=', '==', '!='), key, values: fc.tuple(value) }),
  fc.record({ operator: fc.constantFrom('in', 'notin'), key, values: fc.array(value, { minLength: 1, maxLength: 3 }) }),
  fc.record({ operator: fc.constantFrom('exists', 'absent'), key, values: fc.constant([]) }),
  fc.record({ operator: fc.constantFrom('>', '<'), key, values: fc.tuple(fc.constantFrom('1', '2')) }),
);
type Term = Readonly<{ operator: string; key: string; values: readonly string[] }>;

test('parsing and matching agree with the obvious matcher', (t) => {
  fc.assert(
    fc.property(fc.array(term, { maxLength: 4 }), fc.dictionary(key, value), (terms, object) => {
      const selector = terms.map(formatTerm).join(' , ');
      t.is(
        selects(selector, object),
        terms.every((each) => naive(each, object)),
        `${selector} on ${JSON.stringify(object)}`,
      );
    }),
  );
});

test('the canonical text of labels parses to the same selector', (t) => {
  fc.assert(
    fc.property(fc.array(term, { maxLength: 4 }), (terms) => {
      const selector = selectorOf(terms.map(formatTerm).join(','), '');
      const text = formatSelector(selector);
      t.is(formatSelector(selectorOf(text.slice(0, -1), '')), text);
    }),
  );
});

test('fields with many terms agree with the obvious matcher', (t) => {
  const field = fc.constantFrom('metadata.name', 'metadata.namespace');
  const fieldTerm = fc.tuple(field, fc.constantFrom('=', '!='), fc.constantFrom('a', 'b', ''));
  fc.assert(
    fc.property(fc.array(fieldTerm, { maxLength: 5 }), fc.constantFrom('a', 'b'), fc.constantFrom('', 'b'), (terms, name, namespace) => {
      const selector = selectorOf('', terms.map((each) => each.join('')).join(','));
      const expected = terms.every(
        ([of, operator, wanted]) => ((of === 'metadata.name' ? name : namespace) === wanted) === (operator === '='),
      );
      t.is(meetsSelector(selector, { name, namespace, labels: labels({}) }), expected);
    }),
  );
});

/**
 * Matched 20,000 times, as for a large list, or for a commit with many watches, that uses one
 * selector.
 */
for (const [what, selector] of [
  ['notin with 7,000 values', `a notin (${Array.from({ length: 7_000 }, (_, i) => `v${i}`).join(',')})`],
  ['in with 7,000 values', `a in (${Array.from({ length: 7_000 }, (_, i) => `v${i}`).join(',')},z)`],
  ['3,000 keys that must be absent', Array.from({ length: 3_000 }, (_, i) => `!k${i}`).join(',')],
  ['3,000 requirements on one key', Array.from({ length: 3_000 }, (_, i) => `a!=v${i}`).join(',')],
] as const) {
  test(`matching ${what} costs in proportion to the labels of an object, not to the values`, (t) => {
    const parsed = selectorOf(selector, '');
    const object = { name: 'one', namespace: '', labels: labels({ a: 'z', b: 'x', c: 'y' }) };

    const tookMs = fastestMs(() => {
      for (let i = 0; i < 20_000; i++) if (!meetsSelector(parsed, object)) t.fail('it is selected');
    }, 5);

    t.true(tookMs < 100, `${tookMs} ms for 20,000 objects`);
  });
}

test('junk that is no selector is refused as a bad request and never throws', (t) => {
  const junk = fc.oneof(fc.string(), fc.stringMatching(/^[a-c=!<>(),\\ ./in]*$/));
  fc.assert(
    fc.property(junk, (text) => {
      for (const result of [parseLabelSelector(text), parseFieldSelector(text)]) {
        t.true(result.kind === 'parsed' || result.refusal.reason === 'BadRequest');
      }
    }),
    { numRuns: rounds(1000) },
  );
});

function selectorOf(labelText: string, fieldText: string): Parameters<typeof formatSelector>[0] {
  return { labels: mustParse(parseLabelSelector(labelText)), fields: mustParse(parseFieldSelector(fieldText)) };
}

function formatTerm({ operator, key: name, values }: Term): string {
  if (operator === 'exists') return name;
  if (operator === 'absent') return `!${name}`;
  if (operator === 'in' || operator === 'notin') return `${name} ${operator} (${values.join(',')})`;
  return `${name}${operator}${values.join()}`;
}

function naive({ operator, key: name, values }: Term, object: Record<string, string>): boolean {
  const has = Object.hasOwn(object, name);
  const held = object[name] ?? '';
  const integer = /^[0-9]+$/.test(held);
  if (operator === 'exists') return has;
  if (operator === 'absent') return !has;
  if (operator === '>') return has && integer && Number(held) > Number(values[0]);
  if (operator === '<') return has && integer && Number(held) < Number(values[0]);
  if (operator === '!=' || operator === 'notin') return !has || !values.includes(held);
  return has && values.includes(held);
}
