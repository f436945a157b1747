/**
 * Advice to an operator whose folder or secret belongs to another user.
 * test/faults/machines/kcp-manifests.test.ts shows it as uid 10001 in a container.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adviceOnAccess } from '../../../src/config/no-access.js';
import { test } from '../../support/test.js';

function refused(code: string, syscall: string, path: string): Error {
  return new Error('cannot start', { cause: Object.assign(new Error(code), { code, syscall, path }) });
}

test('the error for an unusable folder names its nearest existing parent, the owner of that, and the uid of the process', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-access-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const { uid, gid } = statSync(folder);

  const advice = adviceOnAccess(refused('EACCES', 'mkdir', join(folder, 'a', 'b')), 10_001);
  t.regex(
    advice,
    new RegExp(
      `^\\. ${folder} belongs to uid ${uid}, gid ${gid} \\(mode 0700\\), and this process runs as uid 10001\\. Make uid 10001 the owner, .*fsGroup`,
    ),
  );
  t.regex(
    adviceOnAccess(refused('EROFS', 'open', join(folder, 'a')), 10_001),
    new RegExp(`^\\. The file system of ${folder} is read-only: mount a volume`),
  );
});

test('other errors get no advice', (t) => {
  t.is(adviceOnAccess(refused('ENOENT', 'open', '/nowhere'), 10_001), '');
  t.is(adviceOnAccess(refused('ENOENT', 'mkdir', join(tmpdir(), 'a', 'b')), 10_001), '');
  t.is(adviceOnAccess(Object.assign(new Error('listen EACCES'), { code: 'EACCES' }), 10_001), '');
  t.is(adviceOnAccess(refused('EACCES', 'open', '/'), undefined), '');
});
