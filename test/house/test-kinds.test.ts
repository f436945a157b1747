/** Finds a test whose folder does not match what the test reaches. */
import { test } from '../support/test.js';
import { findProjectRoot, readSources } from './sources.js';
import { misplacedTests } from './test-kinds.js';

test('a test in unit/ reaches no server, child process or SQLite, and one in integration/ does', (t) => {
  t.deepEqual(misplacedTests(readSources(findProjectRoot(), ['src', 'test'])), []);
});

test('a test in the wrong folder is found, also if only an imported file reaches outside', (t) => {
  const helper = { path: 'test/support/a.ts', text: `import { execFileSync } from 'node:child_process';` };
  const cases: [string, string, RegExp | undefined][] = [
    ['test/unit/web/a.test.ts', `import { a } from '../../support/a.js';`, /reaches node:child_process: it belongs in test\/integration/],
    ['test/unit/web/a.test.ts', `import type { A } from '../../support/a.js';`, undefined],
    ['test/unit/web/a.test.ts', `const { a } = await import('../../support/a.js');`, /belongs in test\/integration/],
    ['test/integration/web/a.test.ts', `import { a } from '../../support/a.js';`, undefined],
    ['test/integration/web/a.test.ts', `import { join } from 'node:path';`, /belongs in test\/unit/],
    ['test/measured/a.test.ts', `import { a } from '../support/a.js';`, undefined],
  ];
  for (const [path, text, why] of cases) {
    const found = misplacedTests([helper, { path, text }]);
    t.is(found.length, why === undefined ? 0 : 1, text);
    if (why !== undefined) t.regex(found[0]!, why);
  }
});
