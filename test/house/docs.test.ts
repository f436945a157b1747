import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from '../support/test.js';
import { reasons } from '../../src/domain/errors.js';
import { docsViolations, tablesIn } from './docs.js';
import { generatedPages } from './generated-pages.js';
import { findProjectRoot } from './sources.js';

const root = findProjectRoot();
const pages = [
  'README.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** The exports of a compiled module; none if it does not exist. */
async function exportedBy(module: string): Promise<Record<string, unknown>> {
  const file = new URL(`../../src/${module}`, import.meta.url);
  return existsSync(file) ? ((await import(file.href)) as Record<string, unknown>) : {};
}

function textsOf(values: readonly unknown[]): readonly string[] {
  return values.filter((value): value is string => typeof value === 'string');
}

test('every reason, option, variable and metric is documented, and every documented one exists', async (t) => {
  const options = tablesIn(await exportedBy('config/options/options.js')).filter((entry) => 'flag' in entry);
  const commandOptions = tablesIn(await exportedBy('config/options/command-options.js')).filter((entry) => 'flag' in entry);
  const metrics = tablesIn(await exportedBy('diagnostics/metric-table.js')).map((entry) => entry['name']);
  const { environmentName } = await exportedBy('config/options/option.js');
  const { failpointVariable } = await exportedBy('diagnostics/failpoint.js');
  const text = ['src/ARCHITECTURE.md', ...pages].map((path) => readFileSync(join(root, path), 'utf8')).join('\n');

  const violations = docsViolations(
    {
      reasons,
      optionKeys: textsOf(options.map((option) => option['yaml'])),
      variables:
        typeof environmentName === 'function'
          ? textsOf([failpointVariable, ...[...options, ...commandOptions].map((option) => environmentName(option) as unknown)])
          : [],
      metrics: textsOf(metrics).filter((name) => name.startsWith('strata_')),
    },
    text,
  );

  t.deepEqual(violations, []);
});

test('every option and test that the pages on security, changes, contributing and bugs name exists', async (t) => {
  const options = [
    ...tablesIn(await exportedBy('config/options/options.js')),
    ...tablesIn(await exportedBy('config/options/command-options.js')),
  ];
  const flags = new Set(textsOf(options.map((option) => option['flag'])));
  const found = { flags: 0, files: 0 };

  for (const page of ['SECURITY.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'docs/security.md', 'docs/bugs.md']) {
    const text = readFileSync(join(root, page), 'utf8');
    for (const [, flag = ''] of text.matchAll(/`[^`\n]*?--([a-z0-9-]+)/g)) {
      found.flags += 1;
      t.true(flags.has(flag), `${page}: --${flag}`);
    }
    for (const [, file = ''] of text.matchAll(/`(test\/[\w./-]+)`/g)) {
      found.files += 1;
      t.true(existsSync(join(root, file)), `${page}: ${file}`);
    }
  }

  for (const page of pages)
    for (const [, file = ''] of readFileSync(join(root, page), 'utf8').matchAll(/build\/(test\/[\w./-]+)\.js/g))
      t.true(existsSync(join(root, `${file}.ts`)), `${page}: build/${file}.js`);
  t.true(found.flags > 20 && found.files > 10, JSON.stringify(found));
});

test('each rule of the wire has a name of its own, and a test that exists', (t) => {
  const rows = [...readFileSync(join(root, 'docs/contract.md'), 'utf8').matchAll(/^\| ([a-z-]+) \| (.+) \|$/gm)].filter(
    ([, name]) => name !== '---',
  );
  const names = rows.map(([, name = '']) => name).filter((name) => name !== 'rule');

  t.true(names.length > 40);
  t.deepEqual(names, [...new Set(names)]);
  for (const [row, name = ''] of rows.filter(([, found]) => found !== 'rule')) {
    const cell = row.split('|').at(-2) ?? '';
    t.true(testsIn(cell).length > 0 || /\bG\d/.test(cell), name);
    t.deepEqual(missingTests(cell), [], name);
  }
});

test('each guarantee, and each fault, has a test that exists', (t) => {
  const shown = readFileSync(join(root, 'docs/guarantees.md'), 'utf8').split('## How each is shown')[1] ?? '';
  const rows = [...shown.matchAll(/^\| [GF]\d.*\|$/gm)].map(([row]) => row);

  t.true(rows.length > 20);
  for (const row of rows) {
    const [, , by = '', onEtcd = ''] = row.split('|').map((cell) => cell.trim());
    t.true(testsIn(by).length > 0 || /\bG\d/.test(by), row);
    t.true(onEtcd === '' || testsIn(onEtcd).length > 0, row);
    t.deepEqual(missingTests(`${by} ${onEtcd}`), [], row);
  }
});

function testsIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([\w./*-]+)`/g)].map(([, name = '']) => `test/${name.replace(/^test\//, '')}`);
}

/** The tests that a cell names in backticks and that are neither a folder nor a file. */
function missingTests(cell: string): readonly string[] {
  return testsIn(cell).filter((name) => !['', '.ts', '.test.ts'].some((ending) => isThere(`${name}${ending}`)));
}

/** A `*` stands for the rest of a file's name. */
function isThere(path: string): boolean {
  const [start = '', ending] = path.split('*');
  if (ending === undefined) return existsSync(join(root, path));
  const folder = dirname(start);
  return readdirSync(join(root, folder)).some((name) => `${folder}/${name}`.startsWith(start) && name.endsWith(ending));
}

test('each generated page equals what `npm run docs` makes of the declarations', (t) => {
  for (const [path, render] of Object.entries(generatedPages)) t.is(readFileSync(join(root, path), 'utf8'), render(), path);
});

test('every link of a page to a file or a heading has a target', (t) => {
  let links = 0;
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8');
    for (const [, file = '', heading] of text.matchAll(/\]\((?!https?:)([^()\s#]*)(?:#([^()\s]*))?\)/g)) {
      const path = file === '' ? page : join(page, '..', file);
      links += 1;
      t.true(existsSync(join(root, path)), `${page}: ${file}`);
      if (heading !== undefined)
        t.true(headingsOf(readFileSync(join(root, path), 'utf8')).includes(heading), `${page}: ${file}#${heading}`);
    }
  }

  t.true(links > 100, `${links} links`);
});

/** The headings as a URL names them. */
function headingsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test('an undocumented entry and a documented one that does not exist are both found', (t) => {
  const documented = {
    reasons: { Expired: { http: 410 }, NotFound: { http: 404 } },
    optionKeys: ['commit.queueBytesMax', 'log.level'],
    variables: ['STRATA_LOG_LEVEL'],
    metrics: ['strata_commits_total', 'strata_commit_duration_seconds'],
  };
  const right =
    '| `Expired` | 410 | gone |\n| NotFound | 404 |\n`commit.queueBytesMax` and `log.level`, STRATA_LOG_LEVEL, strata_commits_total, `strata_commit_duration_seconds_bucket`, `file.name`';

  t.deepEqual(docsViolations(documented, right), []);
  t.deepEqual(docsViolations(documented, right.replace('410', '409')), [
    'the reason Expired 410 is not documented',
    'the documented reason Expired 409 does not exist',
  ]);
  t.deepEqual(docsViolations(documented, right.replace('`log.level`', '`log.levels`')), [
    'the option log.level is not documented',
    'the documented option log.levels does not exist',
  ]);
  t.deepEqual(docsViolations(documented, `${right} STRATA_NOPE`), ['the documented variable STRATA_NOPE does not exist']);
  t.deepEqual(docsViolations(documented, `${right} strata_nope_total`), ['the documented metric strata_nope_total does not exist']);
  t.deepEqual(docsViolations(documented, right.replace('strata_commits_total', '')), ['the metric strata_commits_total is not documented']);
});
