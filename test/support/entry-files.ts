/**
 * Writes entry files: each runs many files of tests in one worker of AVA, one test after the other.
 * A worker for each file would take longer to load AVA, the server and its libraries than most
 * files take to test. `test.ts` tells the titles of two files apart.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Http } from './http-of-file.js';

/**
 * Four long entries and four short ones for each version of HTTP. Eight workers start with the long
 * ones, because AVA orders them by name. A worker that ends early takes a short one, so that no
 * worker runs alone for long at the end. More entries would load the server more often than that
 * saves.
 */
const entriesPerHttp = ['long-1', 'long-2', 'long-3', 'long-4', 'short-1', 'short-2', 'short-3', 'short-4'];
/**
 * The entry to which each file of one HTTP version goes, in turn. Neighbouring files take similar
 * time, so each entry gets some of every folder.
 */
const turns = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3];

/**
 * Replaces the entries below `build` with new ones for these files; returns their paths below
 * `build`.
 */
export function writeEntryFiles(build: string, files: readonly string[], httpOf: (file: string) => Http): readonly string[] {
  const folder = join('test', 'entries');
  rmSync(join(build, folder), { recursive: true, force: true });
  mkdirSync(join(build, folder));
  return (['1', '2'] as const).flatMap((http) => {
    const ofHttp = files.filter((file) => httpOf(file) === http);
    return entriesPerHttp.flatMap((entry, number) => {
      const imports = ofHttp
        .filter((_file, index) => turns[index % turns.length] === number)
        .map((file) => `${setting('TEST_FILE', file)}import '../../${file}';\n`);
      if (imports.length === 0) return [];
      const name = join(folder, `${entry}-http-${http}.test.js`);
      writeFileSync(join(build, name), [setting('TEST_HTTP', http), ...imports].join(''));
      return [name];
    });
  });
}

/** An import that sets a variable: modules run in the order of their imports. */
function setting(name: string, value: string): string {
  return `import 'data:text/javascript,process.env.${name} = "${value}"';\n`;
}
