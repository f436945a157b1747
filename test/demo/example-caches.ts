/**
 * The caches of a folder of examples/, from their files: the address of each, and its parent. Each
 * comes after its parent.
 */
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { loadSettings, type Settings } from '../../src/config/settings.js';
import { projectFile } from '../support/project.js';

export type ExampleCache = Readonly<{ name: string; file: string; settings: Settings; parent: string | undefined }>;

const suffix = '.yaml';

export async function exampleCaches(shape: string): Promise<readonly ExampleCache[]> {
  const folder = projectFile('examples', shape);
  const names = (await readdir(folder)).toSorted().map((name) => basename(name, suffix));
  const caches = await Promise.all(names.map((name) => readExample(name, join(folder, `${name}${suffix}`))));
  const withParents = caches.map((cache) => ({ ...cache, parent: parentOf(cache.settings, caches) }));
  const below = (name: string | undefined): readonly ExampleCache[] =>
    withParents.filter(({ parent }) => parent === name).flatMap((cache) => [cache, ...below(cache.name)]);
  return below(undefined);
}

async function readExample(name: string, file: string): Promise<Omit<ExampleCache, 'parent'>> {
  const text = await readFile(file, 'utf8');
  return { name, file, settings: loadSettings({ flags: { config: file }, environment: {}, readFile: () => text }) };
}

/** The cache that listens at the parent URL of this one. */
function parentOf({ parentUrls: [url] }: Settings, caches: readonly Omit<ExampleCache, 'parent'>[]): string | undefined {
  if (url === undefined) return undefined;
  const port = Number(new URL(url).port);
  const parent = caches.find(({ settings }) => settings.securePort === port);
  if (parent === undefined) throw new Error(`no example listens at ${url}`);
  return parent.name;
}
