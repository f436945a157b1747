/**
 * Checks the folder of each test: a test in unit/ reaches no server, no child process and no
 * SQLite; one in integration/ reaches one of them. So the path of a test says whether it is quick.
 */
import { importsOf, resolveImport } from './imports.js';
import type { Source } from './sources.js';

const outside: ReadonlySet<string> = new Set(['src/server/server.ts', 'node:child_process', 'src/store/sqlite/driver.ts']);

/** The reason for each test that is in the wrong folder. */
export function misplacedTests(sources: readonly Source[]): readonly string[] {
  const imported = new Map(sources.map((source) => [source.path, importedBy(source)]));
  const reached = (path: string, seen = new Set<string>()): string | undefined => {
    if (outside.has(path)) return path;
    if (seen.has(path)) return undefined;
    seen.add(path);
    for (const next of imported.get(path) ?? []) {
      const found = reached(next, seen);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return sources.flatMap(({ path }) => {
    const [, kind] = /^test\/(unit|integration)\/.*\.test\.ts$/.exec(path) ?? [];
    if (kind === undefined) return [];
    const what = reached(path);
    if (kind === 'unit') return what === undefined ? [] : [`${path} reaches ${what}: it belongs in test/integration`];
    return what === undefined ? [`${path} reaches no server, child process or SQLite: it belongs in test/unit`] : [];
  });
}

function importedBy(source: Source): readonly string[] {
  const loaded = importsOf(source.text).filter(({ isType }) => !isType);
  return loaded.map(({ specifier }) => resolveImport(source, specifier) ?? specifier);
}
