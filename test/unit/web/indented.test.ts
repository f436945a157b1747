import { test } from '../../support/test.js';
import fc from 'fast-check';
import { indented } from '../../../src/web/formats/indented.js';

const shown = (text: string): string => indented(Buffer.from(text)).toString();

test('text that JavaScript writes is indented as JavaScript would indent it', (t) => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.boolean(), (text, spaced) => {
      const value: unknown = JSON.parse(text);
      t.is(shown(spaced ? JSON.stringify(value, null, 3) : JSON.stringify(value)), `${JSON.stringify(value, null, 2)}\n`);
    }),
  );
});

test('numbers, names and strings stay as they are', (t) => {
  t.is(
    shown('{"a":1.0,"a":9007199254740993,"\\u0061,{":"[:\\\\\\",","é":-1e+3}'),
    '{\n  "a": 1.0,\n  "a": 9007199254740993,\n  "\\u0061,{": "[:\\\\\\",",\n  "é": -1e+3\n}\n',
  );
});

test('beyond 32 levels the text continues on one line', (t) => {
  const text = `${'['.repeat(40)}1,2${']'.repeat(40)}`;

  const lines = shown(text).split('\n');

  t.is(lines.length, 66);
  t.is(lines[32]?.trim(), '[[[[[[[[1,2]]]]]]]]');
  t.is(lines.join('').replaceAll(' ', ''), text);
});

test('text that is too long, or would become so, stays unindented', (t) => {
  for (const text of [`[${'1,'.repeat(140_000)}1]`, `[${`${'['.repeat(30)}1,1${']'.repeat(30)},`.repeat(1_000)}1]`])
    t.is(shown(text), text);
});
