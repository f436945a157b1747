/**
 * The root of the checkout, found from a compiled test: the nearest folder upwards with a
 * package.json. `tsc` copies no .json, .jsonl or .mjs, so tests read those from the sources through
 * this module.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json. */
function projectRoot(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (folder === dirname(folder)) throw new Error('no package.json above the compiled tests');
  }
}

/** The path of a file of the sources; `segments` start at the project's root. */
export function projectFile(...segments: readonly string[]): string {
  return join(projectRoot(), ...segments);
}

/**
 * The program: that of TEST_MAIN, else the compiled main.js of the build that this test belongs to,
 * whatever its folder is called.
 */
export function builtMain(): string {
  return process.env['TEST_MAIN'] ?? fileURLToPath(new URL('../../src/main.js', import.meta.url));
}
