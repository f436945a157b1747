/**
 * Writes entry files: each runs many files of tests in one worker of AVA, one test after the other.
 * A worker for each file would take longer to load AVA, the server and its libraries than most
 * files take to test. `test.ts` tells the titles of two files apart.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Eight workers start with the long entries, because AVA orders them by name. A worker that ends
 * early takes a short one, so that no worker runs alone for long at the end. More entries would
 * load the server more often than that saves.
 */
const names = ['long-1', 'long-2', 'long-3', 'long-4', 'long-5', 'long-6', 'long-7', 'long-8', 'short-1', 'short-2', 'short-3', 'short-4'];
/**
 * The entry to which each file goes, in turn: two shares to a long one. Neighbouring files take
 * similar time, so each entry gets some of every folder.
 */
const turns = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7];

/** Replaces the entries below `build` with new ones for these files; returns their paths there. */
export function writeEntryFiles(build: string, files: readonly string[]): readonly string[] {
  const folder = join('test', 'entries');
  rmSync(join(build, folder), { recursive: true, force: true });
  mkdirSync(join(build, folder));
  return names.flatMap((entry, number) => {
    const imports = files
      .filter((_file, index) => turns[index % turns.length] === number)
      .map((file) => `import 'data:text/javascript,process.env.TEST_FILE = "${file}"';\nimport '../../${file}';\n`);
    if (imports.length === 0) return [];
    const name = join(folder, `${entry}.test.js`);
    // Modules run in the order of their imports.
    writeFileSync(join(build, name), imports.join(''));
    return [name];
  });
}
