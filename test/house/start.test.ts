/** What a server loads before it is ready: each library takes from 5 to 100 ms of a start, so one that can wait is loaded where it is needed. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from '../support/test.js';
import { builtMain } from '../support/project.js';
import { packageOf } from './imports.js';

/** In compiled files, which keep no import of types. */
const staticImport = /^(?:import|export)\b[^;]*?\bfrom '([^']+)'|^import '([^']+)'|\brequire\('([^']+)'\)/gm;

/** The libraries that these files of src/ load, with all that they import. */
function librariesOf(...entries: readonly string[]): readonly string[] {
  const libraries = new Set<string>();
  const files = new Set(entries.map((entry) => join(dirname(builtMain()), entry)));
  // A set that grows while it is walked: each file once.
  for (const file of files) {
    for (const [, from = '', bare = '', required = ''] of readFileSync(file, 'utf8').matchAll(staticImport)) {
      const specifier = from + bare + required;
      if (specifier.startsWith('.')) files.add(join(dirname(file), specifier));
      else if (!specifier.startsWith('node:')) libraries.add(packageOf(specifier));
    }
  }
  return [...libraries].toSorted();
}

test('a server loads no library at its start that can wait', (t) => {
  t.deepEqual(librariesOf('program.js', 'server.js', 'open-rooms.js'), [
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

test('a process listens to signals before it loads anything of ours', (t) => {
  const loaded = [...readFileSync(builtMain(), 'utf8').matchAll(staticImport)].map(([, from = '', bare = '']) => from + bare);

  t.deepEqual(
    loaded.filter((specifier) => !specifier.startsWith('node:')),
    [],
  );
});

test("the committer's thread loads SQLite alone", (t) => {
  t.deepEqual(librariesOf('store/sqlite/committer-worker.js'), ['better-sqlite3', 'better-sqlite3-napi']);
});

test('what waits is found: a server that issues a certificate loads what others do not', (t) => {
  t.true(librariesOf('certificates/authority.js').includes('@peculiar/x509'));
});
