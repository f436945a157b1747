import { mkdtempSync, mkdirSync, readFileSync, rmSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from './test.js';
import { writeEntryFiles } from './entry-files.js';
import type { Http } from './http-of-file.js';

function aBuild(t: { teardown: (end: () => void) => void }): string {
  const build = mkdtempSync(join(tmpdir(), 'strata-entries-'));
  t.teardown(() => rmSync(build, { recursive: true }));
  mkdirSync(join(build, 'test'));
  return build;
}

test('each file of tests is in one entry, which speaks the HTTP version of that file', (t) => {
  const build = aBuild(t);
  const files = Array.from({ length: 100 }, (_, i) => `test/web/file-${i}.test.js`);
  const httpOf = (file: string): Http => (/[13579]\.test/.test(file) ? '1' : '2');

  const entries = writeEntryFiles(build, files, httpOf).map((name) => readFileSync(join(build, name), 'utf8'));

  const found = entries.flatMap((text) => [...text.matchAll(/^import '..\/..\/(.*)';$/gm)].map(([, file]) => file!));
  t.deepEqual(found.toSorted(), files.toSorted());
  for (const text of entries) {
    const [, http] = /^import 'data:.*TEST_HTTP = "(.)"';/.exec(text) ?? [];
    for (const [, file] of text.matchAll(/^import '..\/..\/(.*)';$/gm)) t.is(httpOf(file!), http as Http);
  }
});

test('new entries replace the old ones, and no entry is without files', (t) => {
  const build = aBuild(t);
  writeEntryFiles(build, ['test/a.test.js', 'test/b.test.js'], () => '1');

  const entries = writeEntryFiles(build, ['test/b.test.js'], () => '2');

  t.deepEqual(entries, ['test/entries/long-1-http-2.test.js']);
  t.deepEqual(readdirSync(join(build, 'test', 'entries')), ['long-1-http-2.test.js']);
});

const { TEST_FILE } = process.env;
for (const [file, title] of [
  ['one', 'two files may have this title'],
  ['another', 'two files may have this title (another)'],
] as const) {
  process.env['TEST_FILE'] = file;
  test('two files may have this title', (t) => {
    t.is(t.title, title);
  });
}
if (TEST_FILE === undefined) delete process.env['TEST_FILE'];
else process.env['TEST_FILE'] = TEST_FILE;
