/**
 * Finds entries of the table _Where to change what_ of src/ARCHITECTURE.md whose file is missing or
 * does not export what the table says.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '../support/test.js';
import { findProjectRoot } from './sources.js';

const root = findProjectRoot();

/** `name`: what the table says the file exports. */
type Named = Readonly<{ file: string; name: string | undefined }>;

test('each file in the table Where to change what exists, and exports what the table says', (t) => {
  const rows = rowsOf(readFileSync(join(root, 'src', 'ARCHITECTURE.md'), 'utf8'));

  t.true(rows.length >= 20, `${rows.length} rows`);
  t.deepEqual(rows.flatMap(namedIn).flatMap(wrong), []);
});

test('a missing file and a name that is not exported are found', (t) => {
  t.deepEqual(namedIn('`domain/errors.ts` (`reasons`), `migrations/`'), [
    { file: 'domain/errors.ts', name: 'reasons' },
    { file: 'migrations/', name: undefined },
  ]);
  t.deepEqual(
    [
      { file: 'domain/errors.ts', name: 'nonsense' },
      { file: 'gone.ts', name: undefined },
    ].flatMap(wrong),
    ['domain/errors.ts does not export nonsense', 'there is no gone.ts'],
  );
});

function rowsOf(page: string): readonly string[] {
  const [, section = ''] = page.split('## Where to change what\n');
  const [table = ''] = section.split('\n## ');
  return [...table.matchAll(/^\|[^|]+\|([^|]+)\|$/gm)].map(([, cell = '']) => cell.trim()).slice(2);
}

function namedIn(cell: string): readonly Named[] {
  return [...cell.matchAll(/`([\w./-]+[./][\w]*)`(?: \(`(\w+)`\))?/g)].map(([, file = '', name]) => ({ file, name }));
}

/** Files are below src; folders may also be beside it. */
function wrong({ file, name }: Named): readonly string[] {
  const path = [join(root, 'src', file), join(root, file)].find((candidate) => existsSync(candidate));
  if (path === undefined) return [`there is no ${file}`];
  const isExported =
    name === undefined || new RegExp(`^export (?:const|(?:async )?function|class|type) ${name}\\b`, 'm').test(readFileSync(path, 'utf8'));
  return isExported ? [] : [`${file} does not export ${name}`];
}
