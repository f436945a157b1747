import { test } from '../support/test.js';
import { failpoints, parseFailpoint } from '../../src/diagnostics/failpoint.js';
import { findProjectRoot, readSources } from './sources.js';

const root = findProjectRoot();

function callsIn(text: string): readonly string[] {
  return [...text.matchAll(/\bfailpoint\('([^']*)'\)/g)].map(([, name = '']) => name);
}

test('each failpoint is called once in the code, and a crash test names it', (t) => {
  const called = readSources(root, ['src']).flatMap(({ text }) => callsIn(text));
  const killedAt = readSources(root, ['test/faults/crash']).map(({ text }) => text);

  t.deepEqual(called.toSorted(), [...failpoints].toSorted());
  for (const name of failpoints)
    t.true(
      killedAt.some((text) => text.includes(`'${name}'`)),
      name,
    );
});

test('each call of a failpoint is found', (t) => {
  t.deepEqual(callsIn(`if (x) failpoint('commit.before');\n  failpoint('a');`), ['commit.before', 'a']);
  t.deepEqual(callsIn(`import { failpoint } from 'x';\nafailpoint('b'); failpoint(name);`), []);
});

test('a failpoint is armed by its name and the number of the call that kills, by default the first', (t) => {
  t.deepEqual(parseFailpoint('commit.before'), { name: 'commit.before', time: 1 });
  t.deepEqual(parseFailpoint('commit.before:12'), { name: 'commit.before', time: 12 });
  for (const text of ['', 'commit', 'commit.before:', 'commit.before:0', 'commit.before:x', 'commit.before:1:2', ' commit.before'])
    t.is(parseFailpoint(text), undefined, text);
});
