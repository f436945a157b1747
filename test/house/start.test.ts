/**
 * Finds libraries that a server loads before it is ready although it could load them later: each
 * adds 5 to 100 ms to a start.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from '../support/test.js';
import { builtMain } from '../support/project.js';
import { packageOf } from './imports.js';

/** Reads compiled files, which have no imports of types. */
const staticImport = /^(?:import|export)\b[^;]*?\bfrom '([^']+)'|^import '([^']+)'|\brequire\('([^']+)'\)/gm;

/** The libraries that these files of src/ load, and the files that they import. */
function librariesOf(...entries: readonly string[]): readonly string[] {
  const libraries = new Set<string>();
  const files = new Set(entries.map((entry) => join(dirname(builtMain()), entry)));
  // The loop adds to the set that it walks, so it visits each file once.
  for (const file of files) {
    for (const [, from = '', bare = '', required = ''] of readFileSync(file, 'utf8').matchAll(staticImport)) {
      const specifier = from + bare + required;
      if (specifier.startsWith('.')) files.add(join(dirname(file), specifier));
      else if (!specifier.startsWith('node:')) libraries.add(packageOf(specifier));
    }
  }
  return [...libraries].toSorted();
}

test('a server loads no library at its start that it can load later', (t) => {
  t.deepEqual(librariesOf('program.js', 'server/server.js', 'server/open-cache.js'), [
    '@koa/router',
    'asn1js',
    'better-sqlite3',
    'better-sqlite3-napi',
    'commander',
    'fresh',
    'koa',
    'msgpackr',
    'pino',
    'pino-pretty',
    'piscina',
    'prom-client',
    'ws',
    'yaml',
  ]);
});

test('main.js imports only modules of Node statically, so it listens to signals before it loads the rest', (t) => {
  const loaded = [...readFileSync(builtMain(), 'utf8').matchAll(staticImport)].map(([, from = '', bare = '']) => from + bare);

  t.deepEqual(
    loaded.filter((specifier) => !specifier.startsWith('node:')),
    [],
  );
});

test("the committer's thread loads no library but SQLite", (t) => {
  t.deepEqual(librariesOf('store/sqlite/committer-worker.js'), ['better-sqlite3', 'better-sqlite3-napi']);
});

test('a library that is loaded later is found: the module that issues certificates loads @peculiar/x509', (t) => {
  t.true(librariesOf('certificates/authority.js').includes('@peculiar/x509'));
});
