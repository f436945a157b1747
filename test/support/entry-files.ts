/**
 * Entry files: each runs many files of tests in one worker of AVA, one test after the other. A worker of their own costs most files more than their tests, because
 * it loads AVA, the server and its libraries anew. The tests of an entry keep their titles, which are unique in the whole project.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Http } from './http-of-file.js';

/**
 * Eight long ones for eight workers, and eight short ones for whoever ends first, so that none is left alone at the end for long. AVA begins with those whose
 * names come first. More of them would load the server more often than that saves.
 */
const entriesPerHttp = ['long-1', 'long-2', 'long-3', 'long-4', 'short-1', 'short-2', 'short-3', 'short-4'];
/** To which entry the files of an HTTP go, by turns. Neighbours take similar time: each entry has some of each folder. */
const turns = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3];

/** Writes the entries for files below `build`, in the place of those of before, and returns their names below it. */
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

/** A module that sets a variable: modules run in the order of their imports. */
function setting(name: string, value: string): string {
  return `import 'data:text/javascript,process.env.${name} = "${value}"';\n`;
}
