/**
 * The error message when SQLite's package is installed but its binary binding is not, as after `npm
 * install --ignore-scripts`.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from '../../support/test.js';
import { builtMain, projectFile } from '../../support/project.js';
import { storeDirectory } from '../../support/test-store.js';

const newer = Number(process.versions['napi']) >= 10;
const packages = newer ? ['better-sqlite3-napi'] : ['better-sqlite3', 'bindings', 'file-uri-to-path'];

test('without its binding SQLite cannot be loaded, and one line says why and how to install it', (t) => {
  const folder = storeDirectory(t);
  for (const path of ['store/sqlite/driver.js', 'domain'])
    cpSync(join(dirname(builtMain()), path), join(folder, 'build/src', path), { recursive: true });
  for (const name of packages)
    cpSync(projectFile(`node_modules/${name}`), join(folder, 'node_modules', name), {
      recursive: true,
      filter: (path) => !/\/(?:build|deps|prebuilds)$|\.node$/.test(path),
    });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');

  const program = `import('./build/src/store/sqlite/driver.js').then(() => console.log('loaded'), ({ message }) => console.log(message))`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { cwd: folder, encoding: 'utf8' });

  t.regex(stdout, /^SQLite cannot be loaded: npm has not installed better-sqlite3 for Node v\d+[^\n]*\n$/);
  t.notRegex(stdout, /Tried:/);
});
