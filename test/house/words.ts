/**
 * Finds exported names that use an everyday word where the field has a term. docs/glossary.md says
 * what the words mean that a name may use.
 */
import { importsOf, resolveImport } from './imports.js';
import { codeOf } from './source-text.js';
import type { Source } from './sources.js';

/** `word` is matched against the name as words that are joined by '-'. */
type Rule = Readonly<{ word: RegExp; instead: string }>;

const rules: readonly Rule[] = [
  { word: /\b(?:hears?|heard|hearing)\b/, instead: 'receive' },
  { word: /\b(?:tells?|told|telling)\b/, instead: 'send, report or return' },
  { word: /\b(?:notes?|noted|noting)\b/, instead: 'record or log' },
  { word: /\b(?:comes?|came|coming)\b/, instead: 'arrive or receive' },
  { word: /\blook(?:s|ed|ing)?\b(?!-up)/, instead: 'read, poll or check; a query for objects is a look-up' },
  { word: /\bst(?:ands?|ood|anding)\b/, instead: 'a verb for what it does' },
  { word: /\b(?:go(?:es|ing|ne)?|went)\b/, instead: 'removed, deleted or closed' },
  { word: /\b(?:takes|taken|taking|took)\b/, instead: 'accept, receive or choose; take is a verb of queues' },
  { word: /\bsettl(?:es?|ed|ing)\b/, instead: 'decide' },
  { word: /\bask(?:s|ed|ing)?\b/, instead: 'request, fetch or require' },
  { word: /\brooms?\b/, instead: 'memory, credit, capacity or drained' },
  { word: /(?<!\bis-)\bwhole\b/, instead: 'full, complete or all; a slice is whole' },
  { word: /\b(?:holds?|held|holding)\b(?!-removal)/, instead: 'has, keeps, waits or pins; only a removal is held' },
  { word: /\bplaces?\b/, instead: 'key, path, URL, route or cluster' },
  { word: /\b(?:patience|patient|onlookers?)\b/, instead: 'timeout, grace; reader or watcher' },
];

/** Other programs use the members of the classes that it exports. */
const packageFace = 'src/client.ts';

const declarations = /^export (?:async )?(?:const|class|function\*?|type|interface) (\w+)/gm;
const classes = /^export class [^]*?^\}/gm;
const publicMembers = /^ {2}(?:static |readonly |async |get |set )*\*?(\w+)/gm;

export function everydayNames(sources: readonly Source[]): readonly string[] {
  const faces = sources
    .filter(({ path }) => path === packageFace)
    .flatMap((face) => importsOf(face.text).map(({ specifier }) => resolveImport(face, specifier)));
  return sources.flatMap(({ path, text }) => {
    const code = codeOf(text);
    const file = path.replace(/^.*\//, '').replace(/\.ts$/, '');
    const bodies = faces.includes(path) ? [] : (code.match(classes) ?? []);
    const names = [file, ...found(code, declarations), ...bodies.flatMap((body) => found(body, publicMembers))];
    return names.flatMap((name) =>
      rules.filter(({ word }) => word.test(wordsOf(name))).map(({ instead }) => `${path}: ${name}: use ${instead}`),
    );
  });
}

function found(code: string, pattern: RegExp): readonly string[] {
  return [...code.matchAll(pattern)].map(([, name = '']) => name);
}

/** `look-up-target` of `lookUpTarget`. */
function wordsOf(name: string): string {
  return name
    .replaceAll(/(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, '-')
    .replaceAll('_', '-')
    .toLowerCase();
}
