/**
 * Finds the rules that are cited by a code, such as W4, and checks that each code leads a reader to
 * its rule.
 *
 * A code is defined in the header of a file, which is its first comment, with nothing but imports
 * before it. A line or a sentence there begins with the code: "W4 A bookmark never overtakes an
 * event." (watcher.ts). The codes of docs/guarantees.md are in the first cell of a table's row,
 * with words.
 *
 * A code may be cited in comments, titles of tests and pages, and in src as the message of an
 * assertion. Its definition is looked for in this order:
 *   1. the header of the same file
 *   2. docs/guarantees.md
 *   3. the header of `x.ts` when `x.test.ts` cites it, and of each file that the same comment,
 *      title or line names (`watcher.ts`, `watch/watcher.ts`), or that the header of the citing
 *      file names. Exactly one of them may define it.
 */
import { posix } from 'node:path';
import { commentsOf, lineOf } from './source-text.js';
import type { Source } from './sources.js';

type Passage = Readonly<{ line: number; text: string }>;

const rulesPage = 'docs/guarantees.md';
/** These look like codes but are none. */
const names = new Set(['V8', 'S3']);

const code = /(?<![\w/%+])(?<!(?<!\d)-)[A-Z]{1,2}[1-9]\d?[a-d]?(?![\w%])/g;
const definition = /(?:^|\s{2,}|[.;:] )([A-Z]{1,2}[1-9]\d?[a-d]?)(?= [^\s–-])/gm;
const firstCell = /^\|([^|]*[a-z]{2}[^|]*)\|/gm;
const headerComment = /^(?:\s*import\b[^;]*;)*\s*(\/\*\*[\s\S]*?\*\/)/;
const comment = /\/\*[\s\S]*?\*\/|(?:\/\/[^\n]*(?:\n[ \t]*(?=\/\/))?)+/g;
const title = /\b(?:test(?:\.\w+)*|check)\(\s*(['"`])(?:\\[\s\S]|(?!\1)[^\\])*\1/g;
const message = /'[A-Z]{1,2}[1-9]\d?'/g;
const fileName = /(?<![\w-])(?:[\w-]+\/)*[\w-]+(?:\.test)?\.ts\b/g;

/** `sources` are all files that define or cite a code, including the pages. */
export function unresolvedCodes(sources: readonly Source[]): readonly string[] {
  const headers = new Map(sources.map(({ path, text }) => [path, headerOf(text)]));
  const defined = new Map([...headers].map(([path, header]) => [path, new Set(found(definition, header))]));
  const page = sources.find(({ path }) => path === rulesPage)?.text ?? '';
  const ofPage = new Set(found(firstCell, page).flatMap((cell) => found(code, cell)));
  const namedIn = (text: string): readonly string[] =>
    found(fileName, text).flatMap((name) => [...headers.keys()].filter((path) => path === name || path.endsWith(`/${name}`)));

  return sources.flatMap((source) => {
    const { path } = source;
    const near = [...testedBy(path, [...headers.keys()]), ...namedIn(headers.get(path) ?? '')];
    return passagesOf(source).flatMap(({ line, text }) =>
      [...text.matchAll(code)]
        .filter(([cited]) => !names.has(cited) && defined.get(path)?.has(cited) !== true && !ofPage.has(cited))
        .flatMap(({ 0: cited, index }) => {
          const places = [...new Set([...near, ...namedIn(text)])].filter((place) => defined.get(place)?.has(cited) === true);
          if (places.length === 1) return [];
          const why = places.length === 0 ? 'is defined neither here nor in a file that is named' : `may be that of ${places.join(' or ')}`;
          return [`${path}:${line + lineOf(text, index) - 1}: ${cited} ${why}`];
        }),
    );
  });
}

function headerOf(text: string): string {
  return (headerComment.exec(text)?.[1] ?? '').replaceAll(/^ ?\/?\*{1,2} ?/gm, '');
}

/**
 * `test/unit/watch/watcher.test.ts` tests `src/watch/watcher.ts`, or the file of that name in a
 * folder of `src/watch/`; the tests of a test helper are beside it.
 */
function testedBy(path: string, all: readonly string[]): readonly string[] {
  const file = path.replace(/\.test\.ts$/, '.ts');
  if (file === path) return [];
  const module = posix.dirname(file).replace(/^test\/(?:unit|integration)/, 'src');
  return [file, ...all.filter((other) => other.startsWith(`${module}/`) && posix.basename(other) === posix.basename(file))];
}

function passagesOf({ path, text }: Source): readonly Passage[] {
  if (!path.endsWith('.ts')) return text.split('\n').map((line, i) => ({ line: i + 1, text: line }));
  const pieces = [...commentsOf(text).matchAll(comment), ...text.matchAll(path.startsWith('src/') ? message : title)];
  return pieces.map(({ 0: piece, index }) => ({ line: lineOf(text, index), text: piece }));
}

/** All matches of a pattern: its group, or the whole match. */
function found(pattern: RegExp, text: string): readonly string[] {
  return [...text.matchAll(pattern)].map(([all, group]) => group ?? all);
}
