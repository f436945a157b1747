/**
 * Finds what a file imports: statically, dynamically, by re-export, and as the file of a worker
 * (`new URL('./x.js', import.meta.url)`).
 */
import { posix } from 'node:path';
import type { Source } from './sources.js';
import { lineOf, withoutComments } from './source-text.js';

/**
 * `names` is the list between the braces, or '*' for everything. `isType`: the import loads
 * nothing.
 */
export type Import = Readonly<{ specifier: string; names: readonly string[] | '*'; isType: boolean; line: number }>;

const statics = /\b(?:import|export)\s+(type\s+)?([\w$*\s{},]+?)\s+from\s*['"]([^'"]+)['"]/g;
const bare = /\b(?:import\s*\(?|require\()\s*['"]([^'"]+)['"]/g;
const workers = /\bnew\s+URL\(\s*['"]([^'"]+\.js)['"]\s*,\s*import\.meta\.url/g;

export function importsOf(text: string): readonly Import[] {
  const code = withoutComments(text);
  const found = (pattern: RegExp, read: (match: RegExpMatchArray) => Omit<Import, 'line'>): Import[] =>
    [...code.matchAll(pattern)].map((match) => ({ ...read(match), line: lineOf(code, match.index) }));

  return [
    ...found(statics, ([, type, clause = '', specifier = '']) => ({ specifier, names: namesIn(clause), isType: type !== undefined })),
    ...found(bare, ([, specifier = '']) => ({ specifier, names: '*', isType: false })),
    ...found(workers, ([, specifier = '']) => ({ specifier, names: '*', isType: false })),
  ];
}

/** The source file that a relative specifier means; undefined for a package. */
export function resolveImport(from: Source, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  return posix.join(posix.dirname(from.path), specifier).replace(/\.js$/, '.ts');
}

/** `ws` of `ws/lib/x`, `@koa/router` of `@koa/router/x`, `node:fs` of `fs/promises`. */
export function packageOf(specifier: string): string {
  const [first = '', second = ''] = specifier.split('/');
  return first.startsWith('@') ? `${first}/${second}` : first;
}

function namesIn(clause: string): readonly string[] | '*' {
  const braces = /\{([^}]*)\}/.exec(clause)?.[1];
  if (braces === undefined || clause.includes('*')) return '*';
  return braces
    .split(',')
    .map(
      (name) =>
        name
          .trim()
          .replace(/^type\s+/, '')
          .split(/\s+as\s+/)[0] ?? '',
    )
    .filter((name) => name !== '');
}
