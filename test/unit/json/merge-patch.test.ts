import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseJson } from '../../../src/json/json-parser.js';
import { formatJson } from '../../../src/json/json-tree.js';
import { applyMergePatch } from '../../../src/json/merge-patch.js';
import { mustParse } from '../../../src/domain/parsed.js';

const merged = (target: string, patch: string): string =>
  formatJson(applyMergePatch(mustParse(parseJson(target)), mustParse(parseJson(patch))));

test('patches give the results of RFC 7386, appendix A', (t) => {
  const cases: [string, string, string][] = [
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['["a","b"]', '["c","d"]', '["c","d"]'],
    ['{"a":"b"}', '["c"]', '["c"]'],
    ['{"a":"foo"}', 'null', 'null'],
    ['{"a":"foo"}', '"bar"', '"bar"'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ];
  for (const [target, patch, expected] of cases) t.is(merged(target, patch), expected, `${target} + ${patch}`);
});

test('members that the patch does not name keep their text', (t) => {
  t.is(
    merged('{"n":9007199254740993,"f":1.0,"__proto__":{"x":1e3}}', '{"m":1}'),
    '{"n":9007199254740993,"f":1.0,"__proto__":{"x":1e3},"m":1}',
  );
});

test('a patch as deep as a body may be is merged without recursion', (t) => {
  const deep = '{"a":'.repeat(9_999) + '{}' + '}'.repeat(9_999);
  t.is(merged('{}', deep), deep);
});

test('merging the same patch twice gives the same as merging it once', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (target, patch) => {
      const once = merged(JSON.stringify(target), JSON.stringify(patch));
      t.is(merged(once, JSON.stringify(patch)), once);
    }),
  );
});
