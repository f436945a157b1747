/**
 * Where the checkout is, seen from a compiled test: the nearest folder upwards that holds package.json. `tsc` copies no
 * .json, .jsonl or .mjs, so tests read those from the sources by way of this.
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

/** A file of the sources, named from the project's root. */
export function projectFile(...segments: readonly string[]): string {
  return join(projectRoot(), ...segments);
}

/** The compiled main.js of the very build this test belongs to, whatever that build's folder is called. */
export function builtMain(): string {
  return fileURLToPath(new URL('../../src/main.js', import.meta.url));
}
