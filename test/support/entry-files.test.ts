import { mkdtempSync, mkdirSync, readFileSync, rmSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from './test.js';
import { writeEntryFiles } from './entry-files.js';
import { httpOfFile, type Http } from './http-of-file.js';

function aBuild(t: { teardown: (end: () => void) => void }): string {
  const build = mkdtempSync(join(tmpdir(), 'strata-entries-'));
  t.teardown(() => rmSync(build, { recursive: true }));
  mkdirSync(join(build, 'test'));
  return build;
}

test('each file of tests is in one entry', (t) => {
  const build = aBuild(t);
  const files = Array.from({ length: 100 }, (_, i) => `test/web/file-${i}.test.js`);

  const entries = writeEntryFiles(build, files).map((name) => readFileSync(join(build, name), 'utf8'));

  const found = entries.flatMap((text) => [...text.matchAll(/^import '..\/..\/(.*)';$/gm)].map(([, file]) => file!));
  t.deepEqual(found.toSorted(), files.toSorted());
});

test('new entries replace the old ones, and no entry is without files', (t) => {
  const build = aBuild(t);
  writeEntryFiles(build, ['test/a.test.js', 'test/b.test.js']);

  const entries = writeEntryFiles(build, ['test/b.test.js']);

  t.deepEqual(entries, ['test/entries/long-1.test.js']);
  t.deepEqual(readdirSync(join(build, 'test', 'entries')), ['long-1.test.js']);
});

test('a commit tests some files over each version of HTTP, and another run tests each over the other', (t) => {
  const files = Array.from({ length: 100 }, (_, i) => `test/web/file-${i}.test.js`);
  const of = (asked: string, commit: string): readonly Http[] => files.map((file) => httpOfFile(file, { asked, commit }));

  t.is(new Set(of('by file', 'one')).size, 2);
  t.notDeepEqual(of('by file', 'one'), of('by file', 'another'));
  t.deepEqual(
    of('other', 'one'),
    of('by file', 'one').map((http) => (http === '1' ? '2' : '1')),
  );
  t.deepEqual(new Set(of('2', 'one')), new Set<Http>(['2']));
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
