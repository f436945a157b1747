import { test } from '../support/test.js';
import { codeOf, commentsOf, withoutComments } from './source-text.js';
import { findProjectRoot, readSources } from './sources.js';
import { deadExports, tidyViolations } from './tidy.js';

const root = findProjectRoot();

test('no source breaks a rule of the style guide that a machine can check', (t) => {
  t.deepEqual(tidyViolations(readSources(root, ['src', 'test', 'bench'])), []);
});

test("no variable of tests or benches has the server's prefix, because the server would refuse to start with it", (t) => {
  const readsOne = /process\.env\[['"`]STRATA_|\bSTRATA_\w+[^}\n]*\} = process\.env/;
  t.deepEqual(
    readSources(root, ['test', 'bench']).flatMap(({ path, text }) => (readsOne.test(text) ? [path] : [])),
    [],
  );
  // Put together here, so that this file does not contain what it forbids.
  for (const text of ['const { STRATA' + '_SEED: seed } = process.env;', "process.env['STRATA" + "_SEED']"]) t.regex(text, readsOne);
});

test('every export is imported somewhere', (t) => {
  t.deepEqual(deadExports(readSources(root, ['src', 'test', 'bench'])), []);
});

test('each banned construct is found', (t) => {
  // Put together here, so that this file does not contain what it forbids.
  const todo = 'TO' + 'DO';
  const cases: [string, string][] = [
    ['src/web/a.ts', `console.log(1);`],
    ['src/web/a.ts', `const x = Math.random();`],
    ['src/web/a.ts', `const x = Date.now();`],
    ['src/web/a.ts', `const x = new Date();`],
    ['src/web/a.ts', 'const x = `${Date.now()}`;'],
    ['src/web/a.ts', `const lagMs = this.#clock.wallMs() - sinceMs;`],
    ['src/web/a.ts', `const leftMs = endMs - this.#parts.clock.wallMs();`],
    ['src/web/a.ts', `take(wallMs - sinceMs);`],
    ['src/web/a.ts', `const nowMs = clock.wallMs();`],
    ['src/web/a.ts', `setTimeout(go, 1);`],
    ['src/web/a.ts', `setInterval(go, 1);`],
    ['src/web/a.ts', `import { readFileSync } ${'from'} 'node:fs';`],
    ['src/web/a.ts', `const text = await fs.readFile(path, 'utf8');`],
    ['src/web/a.ts', `class A extends EventEmitter {}`],
    ['test/web/a.test.ts', `import { spawn } ${'from'} 'node:child_process';`],
    ['src/web/a.ts', `const x: any = 1;`],
    ['test/web/a.ts', `const x = y as any;`],
    ['test/web/a.ts', `const x: any[] = [];`],
    ['src/web/a.ts', `const x: Map<any, string> = y;`],
    ['src/web/a.ts', `// @ts-` + `ignore`],
    ['test/web/a.test.ts', `test.only('x', go);`],
    ['test/web/a.test.ts', `test.serial.only('x', go);`],
    ['test/web/a.test.ts', `test.skip('x', go);`],
    ['test/integration/web/a.test.ts', `const server = TestServer.start();`],
    ['test/integration/web/a.test.ts', `const known: Promise<Known> = (async () => {\n  return start();\n})();`],
    ['src/web/a.ts', `export default 1;`],
    ['src/web/a.ts', `enum A { b }`],
    ['src/web/a.ts', `// ${todo} later`],
    ['src/web/index.ts', ``],
    ['src/web/utils.ts', ``],
    ['src/helpers/a.ts', ``],
    ['test/common.ts', ``],
    ['src/web/types.ts', ``],
    ['src/web/a.ts', 'x;\n'.repeat(501)],
  ];
  for (const [path, text] of cases) t.is(tidyViolations([{ path, text }]).length, 1, `${path}: ${text.slice(0, 60)}`);
});

test('text that only looks like a banned construct is accepted', (t) => {
  const cases: [string, string][] = [
    ['src/clock.ts', `const now = Date.now(); setTimeout(go, 1);`],
    ['src/web/a.ts', `const wallMs = clock.wallMs(); take(validUntilMs - clock.wallMs() - restMs, clock.now() - sinceMs);`],
    ['src/web/a.ts', `const text = 'console.log(Math.random())'; // console.log`],
    ['src/web/a.ts', `const text = \`console.log\`; const pattern = /console.log("/; const y = a / b; // any`],
    ['src/web/a.ts', `const [any] = values; take(any); const x = new Date(now); clock.setTimeout(go);`],
    ['src/web/a.ts', `// ${'TO' + 'DO'} #12 later`],
    ['test/web/a.ts', `setTimeout(go, 1);`],
    ['src/web/a.ts', 'x;\n'.repeat(500)],
  ];
  for (const [path, text] of cases) t.deepEqual(tidyViolations([{ path, text }]), [], text.slice(0, 80));
});

test('an export that nobody imports is found, a type that only its own file uses is not', (t) => {
  const lonely = {
    path: 'src/web/a.ts',
    text: `export const a = 1;\nexport function b(): C { return a; }\nexport type C = 1;\nexport type D = 2;\nexport async function* e() {}`,
  };
  const user = { path: 'src/web/b.ts', text: `import { a, type D } from './a.js';` };

  t.deepEqual(
    deadExports([lonely]),
    ['a', 'b', 'D', 'e'].map((name) => `src/web/a.ts: nobody imports ${name}`),
  );
  t.deepEqual(
    deadExports([lonely, user]),
    ['b', 'e'].map((name) => `src/web/a.ts: nobody imports ${name}`),
  );
  t.deepEqual(deadExports([lonely, { path: 'src/web/c.ts', text: `import * as all from './a.js';` }]), []);
});

test('code, strings and comments are distinguished', (t) => {
  const text = 'a = `x${b ? `y${c}` : "}"}z`; // d\ne = /[/"`]/.test(f) / 2; /* g */ h = \'//\'; i = "\\"";';

  t.is(codeOf(text).replaceAll(/\s+/g, ' '), 'a = ` b ? ` c} : } ; e = .test(f) / 2; h = ; i = ;'.replaceAll(/\s+/g, ' '));
  t.is(commentsOf(text).replaceAll(/\s+/g, ' ').trim(), '// d /* g */');
  t.is(withoutComments(text).length, text.length);
  t.true(withoutComments(text).includes("h = '//'"));
});
