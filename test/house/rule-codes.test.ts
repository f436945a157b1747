import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '../support/test.js';
import { unresolvedCodes } from './rule-codes.js';
import { findProjectRoot, readSources, type Source } from './sources.js';

const root = findProjectRoot();
const page: Source = { path: 'docs/guarantees.md', text: '| G1 durable, G2 ordered | yes |\n| G1, G3 | `test/x` |\n' };
const watcher: Source = {
  path: 'src/watch/watcher.ts',
  text: '/**\n * A watch.\n *\n *   ──▶    Q1 No hole.\n * Q2 `x` waits; Q3 in order. Q4 No repeat (Q7).\n */\nexport const a = 1;\n/** Q5 Not a header. */\n',
};

/** Put together here, so that this file contains no title that it forbids. */
function titled(text: string): string {
  return 'te' + `st('${text}', go);`;
}

function unresolvedOf(citing: Source, ...others: readonly Source[]): readonly string[] {
  return unresolvedCodes([page, watcher, ...others, citing]).filter((found) => found.startsWith(`${citing.path}:`));
}

test('every cited rule code resolves', (t) => {
  const pages = ['src/ARCHITECTURE.md', 'README.md', 'SECURITY.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)]
    .filter((path) => path.endsWith('.md'))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));

  t.deepEqual(unresolvedCodes([...readSources(root, ['src', 'test', 'bench']), ...pages]), []);
});

test('a cited code without a definition is found, with its line', (t) => {
  const cases: [string, string, string][] = [
    ['src/web/a.ts', '\n// As Q1 has it.', '2: Q1'],
    ['src/web/a.ts', '/**\n * Waits (Q2).\n */', '2: Q2'],
    ['src/web/a.ts', '/** No more than (watcher.ts Q5). */', '1: Q5'],
    ['src/web/a.ts', '// See Q1–Q9 of watcher.ts.', '1: Q9'],
    ['src/web/a.ts', '/** See G3. */', '1: G3'],
    ['src/web/a.ts', "assert(a, 'Q1');", '1: Q1'],
    ['test/web/a.test.ts', titled('Q1 no hole'), '1: Q1'],
    ['docs/a.md', 'No hole.\nSee Q1.', '2: Q1'],
  ];
  const nowhere = 'is defined neither here nor in a file that is named';

  t.deepEqual(unresolvedCodes([watcher]), [`${watcher.path}:5: Q7 ${nowhere}`, `${watcher.path}:8: Q5 ${nowhere}`]);
  for (const [path, text, found] of cases) t.deepEqual(unresolvedOf({ path, text }), [`${path}:${found} ${nowhere}`], text);
});

test('a cited code that two named files define is found', (t) => {
  const other: Source = { path: 'src/web/b.ts', text: '/** Q1 Something else. */' };
  const citing: Source = { path: 'src/web/a.ts', text: '// See watcher.ts and b.ts: Q1.' };

  t.deepEqual(unresolvedOf(citing, other), ['src/web/a.ts:1: Q1 may be that of src/watch/watcher.ts or src/web/b.ts']);
});

test('a code resolves in its own header, in a file that is named, in the tested file and in guarantees.md', (t) => {
  const cases: [string, string][] = [
    ['src/web/a.ts', '/** Q1 No hole. */\nimport x;\n// As Q1 has it.'],
    ['src/web/a.ts', '// As Q1 of watcher.ts has it, and (watch/watcher.ts Q2–Q4).'],
    ['src/web/a.ts', "/** Q is watcher.ts. */\n// As Q1 has it.\nassert(a, 'Q2');"],
    ['src/web/a.ts', '// G1 and G2 hold; not HTTP/2, E2E, %C3, V8, SHA-256 or -O1.'],
    ['src/web/a.ts', "const identity = 'A1 of code'; const path = `/D4/`;"],
    ['test/unit/watch/watcher.test.ts', titled('Q1 no hole')],
    ['docs/a.md', 'As G1 says, and Q1 of `src/watch/watcher.ts`.'],
  ];
  for (const [path, text] of cases) t.deepEqual(unresolvedOf({ path, text }), [], text);
});
