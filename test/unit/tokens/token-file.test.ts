/** A file of tokens must be read exactly as kube-apiserver reads it. */
import { test } from '../../support/test.js';
import { parseTokenFile } from '../../../src/tokens/token-file.js';

test('each line is a token, a user, a uid, and perhaps groups in one field', (t) => {
  const file = parseTokenFile('a,alice,1,"x,y"\r\n\nb,bob,\nc,carol,3,"one,,"\na,again,1,\r');

  t.is(file.kind, 'read');
  t.deepEqual(file.kind === 'read' && [...file.tokens].map(([token, { user, groups }]) => [token, user, ...groups]), [
    ['a', 'again'],
    ['b', 'bob'],
    ['c', 'carol', 'one'],
  ]);
});

for (const [text, problem] of [
  ['a,alice', 'line 1 needs a token, a user and a uid'],
  ['\na,alice,1,"x', 'line 2 is not CSV'],
  ['a,al"ice,1', 'line 1 is not CSV'],
  [',alice,1', 'line 1 has an empty token or user'],
  ['a,,1', 'line 1 has an empty token or user'],
  ['a,alice ,1', 'line 1 has a name that an HTTP header cannot carry: "alice "'],
  ['a,alice,1,"x, y"', 'line 1 has a name that an HTTP header cannot carry: " y"'],
] as const)
  test(`a line that cannot be parsed is refused with its number: ${JSON.stringify(text)}`, (t) => {
    t.deepEqual(parseTokenFile(text), { kind: 'wrong', problem });
  });
