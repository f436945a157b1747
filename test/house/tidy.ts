/**
 * Checks the rules of the style guide that need no parser; oxlint has those that need one. Each
 * rule names the replacement.
 */
import { importsOf, resolveImport } from './imports.js';
import { codeOf, commentsOf, lineOf } from './source-text.js';
import type { Source } from './sources.js';

type Rule = Readonly<{ banned: RegExp; instead: string; where: RegExp; except?: RegExp; in?: 'code' | 'comments' }>;

const everywhere = /^/;
const inSource = /^src\//;
/** The console's page runs in a browser, which has no other clock. */
const clocks = /^src\/(?:main\.ts|clock\.ts|diagnostics\/|console\/page\/)/;

/**
 * regular-file.ts reads files that operators name. The others read files of the package, or have a
 * parameter called `readFile`.
 */
const files =
  /^src\/(?:regular-file\.ts|version\.ts|store\/sqlite\/migrate\.ts|console\/page-files\.ts|config\/(?:settings|files\/(?:config-file|policy-file))\.ts)$/;

const rules: readonly Rule[] = [
  { banned: /\bconsole\s*\./g, instead: 'log an event', where: inSource },
  { banned: /\bMath\.random\b/g, instead: 'take randomness as a parameter', where: inSource, except: /^src\/main\.ts$/ },
  { banned: /\bDate\.now\b|\bnew Date\(\s*\)/g, instead: 'take a Clock', where: inSource, except: clocks },
  {
    // The end of a certificate is a time of the wall clock.
    banned: /(?<!\bvalidUntilMs )- [\w.#]*\bwallMs\b|(?<!\bvalidUntilMs - [\w.#]*)\bwallMs(?:\(\))? -/g,
    instead: 'now() for an interval: the wall clock steps',
    where: inSource,
    except: /^src\/certificates\//,
  },
  {
    banned: /\b(?:const|let) (?!wallMs\b)\w+ = [\w.#]*\bwallMs\(\);/g,
    instead: 'wallMs for its name, so that no interval is made of it unseen',
    where: inSource,
    except: /^src\/certificates\//,
  },
  { banned: /(?<![.\w$])set(?:Timeout|Interval)\s*\(/g, instead: 'take a Clock', where: inSource, except: clocks },
  {
    banned: /\breadFile(?:Sync)?(?!\w)(?=,| \}|\()/g,
    instead: 'readRegularFile: a FIFO or a device holds up whoever reads it',
    where: inSource,
    except: files,
  },
  { banned: /\bEventEmitter\b/g, instead: 'an AsyncIterable or a port: modules share no emitters', where: inSource },
  { banned: /(?:[:<|&]|\bas)\s*any\b(?![:(])|\bany\[\]/g, instead: 'unknown, and a parser', where: everywhere },
  {
    banned: /@ts-(?:ignore|nocheck|expect-error)\b/g,
    instead: 'the right type',
    where: everywhere,
    except: /^test\/types\//,
    in: 'comments',
  },
  { banned: /\b(?:TODO|FIXME|XXX)\b(?!\s*\(?#\d+)/g, instead: 'TODO with the number of an issue (#12)', where: everywhere, in: 'comments' },
  { banned: /\btest(?:\.\w+)*\.(?:only|skip)\b/g, instead: 'run every test', where: /^test\// },
  {
    banned: /^const \w+(?:: [^=\n]+)? = (?:\w+\.start\(|\(async \(\) => \{)/gm,
    instead: 'shared() of test/support/shared.ts, because the files of a worker load together',
    where: /^test\/(?:unit|integration|contract|simulation)\//,
  },
  { banned: /\bexport\s+default\b/g, instead: 'a named export', where: everywhere },
  { banned: /\benum\s+\w+\s*\{|\bnamespace\s+\w+\s*\{/g, instead: 'a union with a kind', where: everywhere },
];

const junkNames = /(?:^|\/)(?:index|utils?|helpers?|common|types|misc)\.ts$|\/(?:utils?|helpers?|common|types|misc)\//;
const linesMax = 500;
/** The demo is no test, and ends the processes that it starts. */
const startsChildren = /^test\/(?:support\/children\.ts$|demo\/)/;

/** Other programs use the package's exports. */
const packageFace = 'src/client.ts';

export function tidyViolations(sources: readonly Source[]): readonly string[] {
  return sources.flatMap((source) => {
    const parts = { code: codeOf(source.text), comments: commentsOf(source.text) };
    return [...rules.flatMap((rule) => ruleViolations(rule, source, parts)), ...fileViolations(source)];
  });
}

/**
 * Finds values that no other file imports, and types that neither another file imports nor their
 * own file uses.
 */
export function deadExports(sources: readonly Source[]): readonly string[] {
  const used = new Set<string>();
  for (const source of sources) {
    for (const { specifier, names } of importsOf(source.text)) {
      const target = resolveImport(source, specifier);
      if (target !== undefined) for (const name of names === '*' ? ['*'] : names) used.add(`${target} ${name}`);
    }
  }
  return sources
    .filter(({ path }) => path !== packageFace)
    .flatMap(({ path, text }) =>
      exportsOf(text)
        .filter(({ name, ownUses }) => ownUses === 0 && !used.has(`${path} ${name}`) && !used.has(`${path} *`))
        .map(({ name }) => `${path}: nobody imports ${name}`),
    );
}

function ruleViolations(
  { banned, instead, where, except, in: part = 'code' }: Rule,
  { path, text }: Source,
  parts: Readonly<Record<'code' | 'comments', string>>,
): readonly string[] {
  if (!where.test(path) || except?.test(path) === true) return [];
  return [...parts[part].matchAll(banned)].map(({ 0: found, index }) => `${path}:${lineOf(text, index)}: ${found.trim()}: use ${instead}`);
}

function fileViolations({ path, text }: Source): readonly string[] {
  const violations: string[] = [];
  if (junkNames.test(path)) violations.push(`${path}: name the file after its one noun`);
  const lines = text.trimEnd().split('\n').length;
  if (inSource.test(path) && lines > linesMax) violations.push(`${path}: ${lines} lines; split it`);
  if (path.startsWith('test/') && !startsChildren.test(path) && text.includes('child_process'))
    for (const { specifier, names, line } of importsOf(text))
      if (specifier === 'node:child_process' && names.includes('spawn'))
        violations.push(`${path}:${line}: use spawn of test/support/children.ts, whose children end with their test`);
  return violations;
}

const declarations = /^export\s+(?:declare\s+)?(?:async\s+)?(const|let|class|function\*?|type|interface)\s+([\w$]+)/gm;
const lists = /^export\s+(?:type\s+)?\{([^}]*)\}/gm;

function exportsOf(text: string): readonly { name: string; ownUses: number }[] {
  const code = codeOf(text);
  const declared = [...code.matchAll(declarations)].map(([, kind, name = '']) => {
    const mentions = code.match(new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`, 'g'))?.length ?? 0;
    return { name, ownUses: kind === 'type' || kind === 'interface' ? mentions - 1 : 0 };
  });
  const listed = [...code.matchAll(lists)].flatMap(([, names = '']) =>
    names.split(',').map(
      (name) =>
        name
          .trim()
          .split(/\s+as\s+/)
          .at(-1) ?? '',
    ),
  );
  return [...declared, ...listed.filter((name) => name !== '').map((name) => ({ name: name.replace(/^type\s+/, ''), ownUses: 0 }))];
}
