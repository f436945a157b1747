import { test } from '../../support/test.js';
import { fileStem, parseServingName } from '../../../src/commands/serving-name.js';

for (const name of [
  'localhost',
  'a',
  'cache-1.acme.example',
  '*.acme.example',
  'ACME.example',
  '127.0.0.1',
  '::1',
  'fe80::1',
  `${'a'.repeat(63)}.example`,
])
  test(`a server can be reached under ${name}`, (t) => {
    t.is(parseServingName(name), name);
  });

for (const text of [
  '',
  '*',
  '*.',
  '.',
  '..',
  'a..b',
  '-a',
  'a-',
  'a.-b',
  'a/b',
  'a b',
  'a_b',
  '**.a',
  'a.*.b',
  '300.1.1.1',
  '1.2.3',
  'fe80::1%eth0',
  'ä',
  `${'a'.repeat(64)}.x`,
  'a.'.repeat(127),
])
  test(`no server can be reached under ${JSON.stringify(text)}`, (t) => {
    t.is(parseServingName(text), undefined);
  });

test('no two names have the same file name', (t) => {
  t.is(fileStem('*.acme.example'), 'wildcard.acme.example');
  t.is(fileStem('localhost'), 'localhost');
});
