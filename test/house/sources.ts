/**
 * Reads the project's own TypeScript from the checkout. The tests run from build/, so this module
 * searches upwards for the root.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `path` is relative to the project, with '/'. */
export type Source = Readonly<{ path: string; text: string }>;

export function findProjectRoot(from: string = fileURLToPath(import.meta.url)): string {
  const folder = dirname(from);
  if (existsSync(join(folder, 'package.json'))) return folder;
  if (folder === from) throw new Error('no package.json above this file');
  return findProjectRoot(folder);
}

export function readSources(root: string, folders: readonly string[]): readonly Source[] {
  return folders
    .map((folder) => join(root, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)))
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path: relative(root, path).replaceAll(sep, '/'), text: readFileSync(path, 'utf8') }));
}
