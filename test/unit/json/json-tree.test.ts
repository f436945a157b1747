import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseJson } from '../../../src/json/json-parser.js';
import { canonicalNumber, equalJson, formatJson, isJsonObject, measureJson } from '../../../src/json/json-tree.js';
import type { JsonTree } from '../../../src/json/json-tree.js';
import { mustParse } from '../../../src/domain/parsed.js';

const tree = (text: string): JsonTree => mustParse(parseJson(text));
const messageOf = (input: string | Uint8Array, options?: { depthMax: number }): string | undefined => {
  const result = parseJson(input, options);
  return result.kind === 'refused' ? result.refusal.message : undefined;
};

test('the tree keeps details that JSON.parse would lose: big integers, spellings of numbers, member order and odd names', (t) => {
  const text = '{"b":9007199254740993,"10":1.0,"1":1e3,"__proto__":{"polluted":-0},"constructor":{"prototype":[1E+2]},"":"\\u0000\\ud800"}';

  t.is(formatJson(tree(text)), text);
  t.is(({} as { polluted?: unknown }).polluted, undefined);
});

test('a repeated member has its last value, at its first place', (t) => {
  t.is(formatJson(tree('{"a":1,"b":2,"a":3}')), '{"a":3,"b":2}');
});

test('a repeated member is refused at any depth if the caller asks for that', (t) => {
  const refusal = (text: string): string => {
    const result = parseJson(text, { duplicates: 'refused' });
    return result.kind === 'refused' ? result.refusal.message : '';
  };

  t.is(refusal('{"a":1,"b":2,"a":1}'), 'strict decoding error: duplicate field "a"');
  t.is(refusal('{"a":[{"b":null,"\\u0062":1}]}'), 'strict decoding error: duplicate field "a[0].b"');
  t.is(refusal('{"x":1,"a":{"y":[0,[{"c":{"d":1,"d":1}}]]}}'), 'strict decoding error: duplicate field "a.y[1][0].c.d"');
  t.is(refusal('[{"a":1},{"a":2,"a":3}]'), 'strict decoding error: duplicate field "[1].a"');
  t.is(refusal('[{"a":1},{"a":2,"b":{"a":3}}]'), '');
});

test('text that is not RFC 8259 is refused in the words of encoding/json', (t) => {
  const cases: [string, string][] = [
    ['', 'unexpected end of JSON input'],
    ['{nope', "invalid character 'n' looking for beginning of object key string"],
    ['{"a" 1}', "invalid character '1' after object key"],
    ['{"a":1 "b"}', "invalid character '\"' after object key:value pair"],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ['[1,]', "invalid character ']' looking for beginning of value"],
    ['[1 2]', "invalid character '2' after array element"],
    ['01', "invalid character '1' after top-level value"],
    ['1.', "invalid character '.' after top-level value"],
    ['+1', "invalid character '+' looking for beginning of value"],
    ['"\n"', "invalid character '\\n' in string literal"],
    ['"\\x"', "invalid character 'x' in string escape code"],
    ["'a'", "invalid character '\\'' looking for beginning of value"],
    ['nul', "invalid character 'n' looking for beginning of value"],
    ['"a', 'unexpected end of JSON input'],
    ['\ufeff1', "invalid character '\ufeff' looking for beginning of value"],
  ];
  for (const [text, message] of cases) t.is(messageOf(text), message, text);
});

test('bytes that are not UTF-8 are refused', (t) => {
  t.is(messageOf(Uint8Array.of(0x22, 0xff, 0x22)), 'the text is not valid UTF-8');
});

test('nesting up to the bound is parsed, compared and printed without recursion; one level more is refused', (t) => {
  const deep = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

  t.is(formatJson(tree(deep(10_000))), deep(10_000));
  t.true(equalJson(tree(deep(10_000)), tree(deep(10_000))));
  t.is(messageOf(deep(10_001)), 'exceeded max depth');
  t.is(messageOf('{"a":'.repeat(3), { depthMax: 2 }), 'exceeded max depth');
  t.is(messageOf(deep(500_000)), 'exceeded max depth');
});

test('numbers are equal if their exact values are, however they are spelled', (t) => {
  const equal = ['1 1.0', '1 1e0', '10e-1 1', '100 1e2', '-0 0', '0.00 0e9', '12345678901234567890.0 12345678901234567890', '1E+2 100'];
  const different = ['9007199254740993 9007199254740992', '1 -1', '1 "1"', '1e400 1e401', '0.1 0.10000000000000001', '1 null'];

  for (const pair of equal) t.true(equalJson(...vias(pair)), pair);
  for (const pair of different) t.false(equalJson(...vias(pair)), pair);
});

test('a number with an absurd exponent equals itself and costs little', (t) => {
  const number = `1e${'9'.repeat(1_000_000)}`;

  t.true(equalJson(tree(number), tree(number)));
  t.false(equalJson(tree(number), tree('1')));
});

test('all spellings of a number have the same canonical text', (t) => {
  t.is(canonicalNumber({ number: '-1.50e3' }), '-15e2');
  t.is(canonicalNumber({ number: '-0.0' }), '0e0');
});

test('equality ignores the order of members, and not a missing member', (t) => {
  t.true(equalJson(tree('{"a":1,"b":[2,{}]}'), tree('{"b":[2,{}],"a":1.0}')));
  t.false(equalJson(tree('{"a":1,"b":2}'), tree('{"a":1,"c":2}')));
  t.false(equalJson(tree('{"constructor":1}'), tree('{"toString":1}')));
  t.false(equalJson(tree('[]'), tree('{}')));
});

test('measuring is exact below the bound and stops above it', (t) => {
  t.is(measureJson(tree('{"a":[1,2]}'), 100), '{"a":[1,2]}'.length);
  t.true(measureJson(tree(`[${'1,'.repeat(1000)}1]`), 10) <= 12);
});

test('parse agrees with JSON.parse on every value, and format is its inverse', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      t.is(formatJson(tree(text)), text);
      t.true(equalJson(tree(JSON.stringify(value, null, 2)), tree(text)));
    }),
  );
});

test('whatever the text, parse accepts exactly what JSON.parse accepts and never throws', (t) => {
  const junk = fc.oneof(fc.string(), fc.stringMatching(/^[\][{}:,"\\0-9eE+\-. tfnu]*$/), fc.json().map(damage));
  fc.assert(
    fc.property(junk, (text) => {
      t.is(parseJson(text).kind === 'parsed', accepts(text), JSON.stringify(text));
    }),
    { numRuns: rounds(1000) },
  );
});

test('an object is distinguished from a number', (t) => {
  t.true(isJsonObject(tree('{"number":"1"}')));
  t.false(isJsonObject(tree('1')));
});

function vias(pair: string): [JsonTree, JsonTree] {
  const [left = '', right = ''] = pair.split(' ');
  return [tree(left), tree(right)];
}

function damage(text: string): string {
  const at = text.length >> 1;
  return text.slice(0, at) + text.slice(at + 1);
}

function accepts(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
