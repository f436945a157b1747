/**
 * How a key is written: nobody can read the key before it is in place, or redirect the write to
 * another file.
 */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { replaceFile } from '../../../src/certificates/pair-files.js';

function aFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'strata-pair-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('only the owner can read a key and everybody can read a certificate, whatever files they replace', (t) => {
  const folder = aFolder(t);
  const file = join(folder, 'amber.key');
  writeFileSync(file, 'before', { mode: 0o644 });
  chmodSync(file, 0o666);

  replaceFile(file, 'secret', 0o600);
  replaceFile(join(folder, 'amber.crt'), 'certificate', 0o644);

  t.is(readFileSync(file, 'utf8'), 'secret');
  t.is(statSync(file).mode & 0o777, 0o600);
  t.is(statSync(join(folder, 'amber.crt')).mode & 0o777, 0o644);
  t.deepEqual(readdirSync(folder).toSorted(), ['amber.crt', 'amber.key']);
});

test('no link is followed, neither at the temporary file nor at the file itself', (t) => {
  const folder = aFolder(t);
  const file = join(folder, 'amber.key');
  const elsewhere = aFolder(t);
  symlinkSync(join(elsewhere, 'caught'), `${file}.new`);
  writeFileSync(join(elsewhere, 'victim'), 'untouched');
  symlinkSync(join(elsewhere, 'victim'), file);

  replaceFile(file, 'secret', 0o600);

  t.false(existsSync(join(elsewhere, 'caught')));
  t.is(readFileSync(join(elsewhere, 'victim'), 'utf8'), 'untouched');
  t.true(lstatSync(file).isFile());
  t.is(readFileSync(file, 'utf8'), 'secret');
});

test('a write leaves nothing behind if its file cannot be put in place', (t) => {
  const folder = aFolder(t);

  t.throws(() => replaceFile(folder, 'secret', 0o600));
  t.deepEqual(
    readdirSync(join(folder, '..')).filter((name) => name.startsWith(`${folder.split('/').at(-1)}.`)),
    [],
  );
});
