import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '../support/test.js';
import { importsOf } from './imports.js';
import { missingModules, layerViolations, unknownLibraries } from './layers.js';
import { findProjectRoot, readSources } from './sources.js';

const root = findProjectRoot();

test('every module imports only what it may', (t) => {
  t.deepEqual(layerViolations(readSources(root, ['src'])), []);
});

test('every module with a list of imports exists', (t) => {
  t.deepEqual(missingModules(readSources(root, ['src'])), []);
});

test('a list of a module that does not exist is found', (t) => {
  t.true(missingModules([{ path: 'src/store/a.ts', text: '' }]).includes('there is no web/kube: test/house/layers.ts lists its imports'));
});

test('every library may be imported by a module', (t) => {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, object>;
  t.deepEqual(unknownLibraries(Object.keys({ ...dependencies, ...optionalDependencies })), []);
});

test('an import that is not allowed is found', (t) => {
  const cases: [string, string, string][] = [
    ['src/domain/a.ts', `import { x } from '../store/b.js';`, 'domain may not import store'],
    ['src/domain/a.ts', `import type { X } from '../diagnostics/b.js';`, 'domain may not import diagnostics'],
    ['src/domain/a.ts', `import { readFile } from 'node:fs/promises';`, 'domain is pure and may not import node:fs'],
    ['src/domain/a.ts', `import net from 'net';`, 'domain is pure and may not import node:net'],
    ['src/web/a.ts', `import { hub } from '../watch/hub.js';`, 'web may not import watch'],
    ['src/intake/a.ts', `export { x } from '../store/b.js';`, 'intake may not import store'],
    ['src/intake/a.ts', `const x = await import('../sender/b.js');`, 'intake may not import sender'],
    ['src/sender/a.ts', `import '../intake/b.js';`, 'sender may not import intake'],
    ['src/watch/a.ts', `new Worker(new URL('../store/worker.js', import.meta.url));`, 'watch may not import store'],
    ['src/main.ts', `import { open } from './store/sqlite/store.js';`, 'main.ts may not import store'],
    ['src/commands/a.ts', `import { x } from '../server/server.js';`, 'commands may not import server'],
    ['src/intake/admit/a.ts', `import { x } from '../push/b.js';`, 'intake/admit may not import intake/push'],
    ['src/intake/writes/a.ts', `import { x } from '../shards/b.js';`, 'intake/writes may not import intake/shards'],
    ['src/store/etcd/a.ts', `import { x } from '../sqlite/b.js';`, 'store/etcd may not import store/sqlite'],
    ['src/web/kube/a.ts', `import { x } from '../../console/b.js';`, 'web/kube may not import console'],
    ['src/store/a.ts', `import Database from 'better-sqlite3';`, 'only store/sqlite may import better-sqlite3, not store'],
    ['src/web/a.ts', `import Database from 'better-sqlite3';`, 'only store/sqlite may import better-sqlite3, not web'],
    [
      'src/web/a.ts',
      `import { Command } from "commander/esm.mjs";`,
      'only program.ts and config/command-line may import commander, not web',
    ],
    ['src/store/a.ts', `import Router from '@koa/router';`, 'only web may import @koa/router, not store'],
    ['src/store/a.ts', `import lodash from 'lodash';`, 'lodash may be imported by no module'],
    ['src/store/a.ts', `import { env } from 'node:process';`, 'only main.ts knows the process'],
    ['src/store/a.ts', `export const x = process.env['X'];`, 'only main.ts knows the process'],
    ['src/store/a.ts', `import { y } from '../../test/support/x.js';`, 'test/support/x.ts is outside src'],
    ['src/attic/a.ts', ``, 'the module attic has no list in test/house/layers.ts'],
  ];
  for (const [path, text, why] of cases) {
    const violations = layerViolations([{ path, text }]);
    t.is(violations.length, 1, text);
    t.true(violations[0]?.endsWith(why), `${violations[0]} / ${why}`);
  }
  t.is(unknownLibraries(['left-pad']).length, 1);
});

test('an allowed import is no violation', (t) => {
  const cases: [string, string][] = [
    ['src/domain/a.ts', `import { x } from './b.js'; import assert from 'node:assert/strict';`],
    ['src/tree/a.ts', `import { x } from '../intake/b.js'; import { y } from '../sender/c.js'; import { z } from '../frames/d.js';`],
    ['src/shard/a.ts', `import { x } from '../sender/b.js'; import { y } from '../diagnostics/log.js';`],
    ['src/server/server.ts', `import { x } from '../store/sqlite/store.js'; import { y } from '../web/app.js';`],
    ['src/commands/a.ts', `import { x } from '../server/open-store.js';`],
    ['src/intake/push/a.ts', `import { x } from '../shards/b.js'; import { y } from '../../frames/c.js';`],
    ['src/store/etcd/a.ts', `import { x } from '../b.js'; import { y } from './c.js';`],
    ['src/program.ts', `import { Command } from 'commander';`],
    ['src/main.ts', `process.exit(1);`],
    ['src/store/sqlite/a.ts', `import Database from 'better-sqlite3'; import { b } from '../b.js';`],
    [
      'src/web/a.ts',
      `// import { x } from '../store/b.js';\n/* process.env */ const text = 'process.env'; const found = text.process; this.#process.x();`,
    ],
  ];
  for (const [path, text] of cases) t.deepEqual(layerViolations([{ path, text }]), [], text);
});

test('every form of import is found, with its line', (t) => {
  const text = [
    `import a from 'one';`,
    `import type { B, C as D } from "./two.js";`,
    `import {\n  e,\n  type F,\n} from './three.js';`,
    `export * from './four.js';`,
    `export { g } from './five.js';`,
    `import 'six';`,
    `const h = await import('./seven.js');`,
    `new URL('./eight.js', import.meta.url);`,
    `// import x from 'nine';`,
  ].join('\n');

  t.deepEqual(
    importsOf(text)
      .map(({ specifier, names, line }) => `${specifier} ${String(names)} ${line}`)
      .sort(),
    ['./eight.js * 11', './five.js g 8', './four.js * 7', './seven.js * 10', './three.js e,F 3', './two.js B,C 2', 'one * 1', 'six * 9'],
  );
});
