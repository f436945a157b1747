import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseJson } from '../../../src/json/json-parser.js';
import { applyJsonPatch, parseJsonPatch } from '../../../src/json/json-patch.js';
import { formatJson } from '../../../src/json/json-tree.js';
import type { JsonTree } from '../../../src/json/json-tree.js';
import { mustParse } from '../../../src/domain/parsed.js';

const tree = (text: string): JsonTree => mustParse(parseJson(text));

/** The text after the patch, or the reason of its refusal. */
function patched(target: string, patch: string): string {
  const operations = parseJsonPatch(tree(patch));
  if (operations.kind === 'refused') return `${operations.refusal.reason}: ${operations.refusal.message}`;
  const result = applyJsonPatch(tree(target), operations.value);
  return result.kind === 'parsed' ? formatJson(result.value) : `${result.refusal.reason}: ${result.refusal.message}`;
}

test('patches give the results of RFC 6902, appendix A, and of its test suite', (t) => {
  const cases: [string, string, string, string][] = [
    ['A.1', '{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux"}]', '{"foo":"bar","baz":"qux"}'],
    ['A.2', '{"foo":["bar","baz"]}', '[{"op":"add","path":"/foo/1","value":"qux"}]', '{"foo":["bar","qux","baz"]}'],
    ['A.3', '{"baz":"qux","foo":"bar"}', '[{"op":"remove","path":"/baz"}]', '{"foo":"bar"}'],
    ['A.4', '{"foo":["bar","qux","baz"]}', '[{"op":"remove","path":"/foo/1"}]', '{"foo":["bar","baz"]}'],
    ['A.5', '{"baz":"qux","foo":"bar"}', '[{"op":"replace","path":"/baz","value":"boo"}]', '{"baz":"boo","foo":"bar"}'],
    [
      'A.6',
      '{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}',
      '[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]',
      '{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}',
    ],
    [
      'A.7',
      '{"foo":["all","grass","cows","eat"]}',
      '[{"op":"move","from":"/foo/1","path":"/foo/3"}]',
      '{"foo":["all","cows","eat","grass"]}',
    ],
    [
      'A.8',
      '{"baz":"qux","foo":["a",2,"c"]}',
      '[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]',
      '{"baz":"qux","foo":["a",2,"c"]}',
    ],
    ['A.10', '{"foo":"bar"}', '[{"op":"add","path":"/child","value":{"grandchild":{}}}]', '{"foo":"bar","child":{"grandchild":{}}}'],
    ['A.11', '{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux","xyz":123}]', '{"foo":"bar","baz":"qux"}'],
    ['A.14', '{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":10}]', '{"/":9,"~1":10}'],
    ['A.16', '{"foo":["bar"]}', '[{"op":"add","path":"/foo/-","value":["abc","def"]}]', '{"foo":["bar",["abc","def"]]}'],
    ['empty patch', '{"a":1.0}', '[]', '{"a":1.0}'],
    ['whole document', '{"a":1}', '[{"op":"replace","path":"","value":[2]}]', '[2]'],
    ['empty name', '{"":1}', '[{"op":"replace","path":"/","value":2}]', '{"":2}'],
    ['add replaces a member', '{"a":1,"b":2}', '[{"op":"add","path":"/a","value":null}]', '{"a":null,"b":2}'],
    ['add at the end by index', '["a"]', '[{"op":"add","path":"/1","value":"b"}]', '["a","b"]'],
    ['copy', '{"a":{"b":1}}', '[{"op":"copy","from":"/a","path":"/c"}]', '{"a":{"b":1},"c":{"b":1}}'],
    [
      'a copy is independent',
      '{"a":[1]}',
      '[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/-","value":2}]',
      '{"a":[1],"b":[1,2]}',
    ],
    ['move to itself', '{"a":1}', '[{"op":"move","from":"/a","path":"/a"}]', '{"a":1}'],
    [
      'test compares values',
      '{"a":{"x":1.0,"y":[1e2]}}',
      '[{"op":"test","path":"/a","value":{"y":[100],"x":1}}]',
      '{"a":{"x":1.0,"y":[1e2]}}',
    ],
    ['test of null', '{"a":null}', '[{"op":"test","path":"/a","value":null}]', '{"a":null}'],
    ['odd names', '{"__proto__":{"a":1}}', '[{"op":"add","path":"/__proto__/b","value":2}]', '{"__proto__":{"a":1,"b":2}}'],
    ['numeric names of objects', '{"1":{"0":"x"}}', '[{"op":"remove","path":"/1/0"}]', '{"1":{}}'],
  ];
  for (const [title, target, patch, expected] of cases) t.is(patched(target, patch), expected, title);
});

test('a failing operation refuses the whole patch, and the error names that operation', (t) => {
  const cases: [string, string, RegExp][] = [
    ['{"baz":"qux"}', '{"op":"test","path":"/baz","value":"bar"}', /operation 0 \(test "\/baz"\): the document has another value there/],
    ['{"a":9007199254740993}', '{"op":"test","path":"/a","value":9007199254740992}', /the document has another value there/],
    ['{"a":1}', '{"op":"test","path":"/b","value":1}', /the document has another value there/],
    ['{"a":1}', '{"op":"test","path":"/b/c","value":1}', /there is no member "b"/],
    ['{"foo":"bar"}', '{"op":"add","path":"/baz/bat","value":"qux"}', /there is no member "baz"/],
    ['{"foo":"bar"}', '{"op":"add","path":"/foo/bat","value":"qux"}', /a value without members/],
    ['["a"]', '{"op":"add","path":"/2","value":1}', /"2" is not an index/],
    ['["a"]', '{"op":"replace","path":"/1","value":1}', /"1" is not an index/],
    ['["a"]', '{"op":"remove","path":"/-"}', /"-" is not an index/],
    ['["a"]', '{"op":"remove","path":"/00"}', /"00" is not an index/],
    ['["a"]', '{"op":"remove","path":"/-1"}', /"-1" is not an index/],
    ['["a"]', '{"op":"test","path":"/1e0","value":1}', /"1e0" is not an index/],
    ['[]', '{"op":"remove","path":"/0"}', /"0" is not an index/],
    ['{}', '{"op":"remove","path":"/constructor"}', /there is no member "constructor"/],
    ['{}', '{"op":"remove","path":""}', /cannot be removed/],
    ['{"a":{}}', '{"op":"move","from":"/a","path":"/a/b"}', /cannot be moved into itself/],
    ['{}', '{"op":"copy","from":"/a","path":"/b"}', /there is no member "a"/],
    ['{}', '{"op":"add","path":"/a"}', /has no "value"/],
    ['{}', '{"op":"add","path":"a","value":1}', /no JSON pointer in "path"/],
    ['{}', '{"op":"add","path":"/~2","value":1}', /no JSON pointer in "path"/],
    ['{}', '{"op":"move","path":"/a"}', /no JSON pointer in "from"/],
    ['{}', '{"op":"add","path":"/a","value":1,"from":5}', /a "from" that is not a string/],
    ['{}', '{"op":"spam","path":"/a"}', /operation 0 \(spam "\/a"\): is not an operation/],
  ];
  for (const [target, operation, message] of cases) t.regex(patched(target, `[${operation}]`), message, operation);
  for (const [target, operation] of cases) t.regex(patched(target, `[${operation}]`), /^Invalid: /, operation);
});

test('members that RFC 6902 does not have are ignored, except in a strict patch', (t) => {
  for (const member of ['"bogus":1', '"Op":"remove"', '"form":"/x"', '"not":true']) {
    const patch = tree(`[{"op":"add","path":"/a","value":1,${member}}]`);
    t.is(parseJsonPatch(patch).kind, 'parsed', member);
    const strict = parseJsonPatch(patch, { isStrict: true });
    t.true(strict.kind === 'refused' && /unknown field "\[0\]\.\w+"/.test(strict.refusal.message), member);
  }
});

test('a patch that is not a list of operations is a bad request', (t) => {
  t.regex(patched('{}', '{}'), /^BadRequest: /);
  t.regex(patched('{}', '[1]'), /^BadRequest: operation 0/);
});

test('a refusal quotes only a little of the patch', (t) => {
  const long = '\u0001'.repeat(100_000);
  for (const operation of [
    { op: long, path: '/a' },
    { op: 'remove', path: `/${long}` },
    { op: 'add', path: long, value: 1 },
  ])
    t.true(patched('{}', JSON.stringify([operation])).length < 2_000);
});

test('more than 10,000 operations are too many', (t) => {
  const operations = (count: number): string => `[${Array(count).fill('{"op":"test","path":"","value":{}}').join()}]`;

  t.is(patched('{}', operations(10_000)), '{}');
  t.is(patched('{}', operations(10_001)), 'RequestEntityTooLarge: The allowed maximum operations in a JSON patch is 10000, got 10001');
});

test('copies that double the document each time end at the bound', (t) => {
  const copies = Array.from({ length: 60 }, (_, index) => `{"op":"copy","from":"","path":"/${index}"}`).join();
  t.regex(patched('{"a":"b"}', `[${copies}]`), /^RequestEntityTooLarge: /);
});

test('repeated inserts at the front of a huge array end at the bound', (t) => {
  const target = `[${'0,'.repeat(100_000)}0]`;
  const operations = Array(1000).fill('{"op":"add","path":"/0","value":1}').join();
  t.regex(patched(target, `[${operations}]`), /^RequestEntityTooLarge: .* may move at most 50000000 array elements/);
});

test('a patch does not change its target, and shares what it does not name', (t) => {
  const target = tree('{"a":{"x":[1]},"b":{"y":9007199254740993}}') as ReadonlyMap<string, JsonTree>;
  const before = formatJson(target);

  const result = mustParse(applyJsonPatch(target, mustParse(parseJsonPatch(tree('[{"op":"add","path":"/a/x/-","value":2}]')))));

  t.is(formatJson(target), before);
  t.is((result as ReadonlyMap<string, JsonTree>).get('b'), target.get('b'));
});

test('an absent member equals null in a test, as in Kubernetes and against RFC 6902', (t) => {
  const isTaken = (target: string, path: string, value: string): boolean =>
    patched(target, `[{"op":"test","path":"${path}","value":${value}}]`) === target;
  // As in gopkg.in/evanphx/json-patch.v4.
  for (const [target, path, isNull] of [
    ['{}', '/a', true],
    ['{"a":{}}', '/a/b', true],
    ['{"a":null}', '/a', true],
    ['{"a":2}', '/a', false],
    ['{"l":[2]}', '/l/1', false],
    ['{"l":[2]}', '/l/x', false],
    ['{}', '/a/b', false],
    ['{"a":null}', '/a/b', false],
  ] as const) {
    t.is(isTaken(target, path, 'null'), isNull, `${target} ${path}`);
    t.false(isTaken(target, path, '1'));
  }
});

test('adding a member and removing it again gives the same text', (t) => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (object, value) => {
      const text = JSON.stringify(object);
      const patch = JSON.stringify([
        { op: 'add', path: '/~1 new ~0', value },
        { op: 'test', path: '/~1 new ~0', value },
        { op: 'remove', path: '/~1 new ~0' },
      ]);
      t.is(patched(text, patch), formatJson(tree(text)));
    }),
  );
});

test('junk patches are refused and never throw', (t) => {
  const path = fc.stringMatching(/^(\/[ab0-3-]){0,3}$/);
  const operation = fc.record(
    { op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'x'), path, from: path, value: fc.jsonValue() },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(operation, fc.jsonValue())), (operations) => {
      const result = parseJsonPatch(tree(JSON.stringify(operations)));
      if (result.kind === 'parsed') applyJsonPatch(tree('{"a":[{"b":1},[2]],"b":{"0":null}}'), result.value);
      t.pass();
    }),
    { numRuns: rounds(500) },
  );
});
