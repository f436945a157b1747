import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '../support/test.js';
import { importsOf } from './imports.js';
import { missingRooms, layerViolations, unfencedLibraries } from './layers.js';
import { findProjectRoot, readSources } from './sources.js';

const root = findProjectRoot();

test('every import of src follows the arrows and stays within the fences', (t) => {
  t.deepEqual(layerViolations(readSources(root, ['src'])), []);
});

test('every room with arrows exists', (t) => {
  t.deepEqual(missingRooms(readSources(root, ['src'])), []);
});

test('arrows of a room that does not exist are found', (t) => {
  t.true(missingRooms([{ path: 'src/store/a.ts', text: '' }]).includes('there is no web/kube: test/house/layers.ts has arrows for it'));
});

test('every library has a room', (t) => {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, object>;
  t.deepEqual(unfencedLibraries(Object.keys({ ...dependencies, ...optionalDependencies })), []);
});

test('an arrow or a library that is not in the design is found', (t) => {
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
    ['src/store/a.ts', `import Database from 'better-sqlite3';`, 'better-sqlite3 lives in store/sqlite, not in store'],
    ['src/web/a.ts', `import Database from 'better-sqlite3';`, 'better-sqlite3 lives in store/sqlite, not in web'],
    ['src/web/a.ts', `import { Command } from "commander/esm.mjs";`, 'commander lives in program.ts and config/command-line, not in web'],
    ['src/store/a.ts', `import Router from '@koa/router';`, '@koa/router lives in web, not in store'],
    ['src/store/a.ts', `import lodash from 'lodash';`, 'lodash lives in no room'],
    ['src/store/a.ts', `import { env } from 'node:process';`, 'only main.ts knows the process'],
    ['src/store/a.ts', `export const x = process.env['X'];`, 'only main.ts knows the process'],
    ['src/store/a.ts', `import { y } from '../../test/support/x.js';`, 'test/support/x.ts is outside src'],
    ['src/attic/a.ts', ``, 'the room attic has no arrows in test/house/layers.ts'],
  ];
  for (const [path, text, why] of cases) {
    const violations = layerViolations([{ path, text }]);
    t.is(violations.length, 1, text);
    t.true(violations[0]?.endsWith(why), `${violations[0]} / ${why}`);
  }
  t.is(unfencedLibraries(['left-pad']).length, 1);
});

test('an arrow of the design is no violation', (t) => {
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
