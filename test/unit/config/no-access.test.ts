/** What is said to an operator whose folder or secret is somebody else's. As uid 10001 in a container, it is seen in test/faults/machines/kcp-manifests.test.ts. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adviceOnAccess } from '../../../src/config/no-access.js';
import { test } from '../../support/test.js';

function refused(code: string, syscall: string, path: string): Error {
  return new Error('cannot start', { cause: Object.assign(new Error(code), { code, syscall, path }) });
}

test('who may not use a folder is told of the nearest one that is there, whose it is, and as whom it runs', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-access-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const { uid, gid } = statSync(folder);

  const advice = adviceOnAccess(refused('EACCES', 'mkdir', join(folder, 'a', 'b')), 10_001);
  t.regex(
    advice,
    new RegExp(`^\\. ${folder} belongs to uid ${uid}, gid ${gid} \\(mode 0700\\), and this process runs as uid 10001: .*fsGroup`),
  );
  t.regex(
    adviceOnAccess(refused('EROFS', 'open', join(folder, 'a')), 10_001),
    new RegExp(`^\\. ${folder} cannot be written by anybody: mount a volume`),
  );
});

test('of other errors nothing is said', (t) => {
  t.is(adviceOnAccess(refused('ENOENT', 'open', '/nowhere'), 10_001), '');
  t.is(adviceOnAccess(refused('ENOENT', 'mkdir', join(tmpdir(), 'a', 'b')), 10_001), '');
  t.is(adviceOnAccess(Object.assign(new Error('listen EACCES'), { code: 'EACCES' }), 10_001), '');
  t.is(adviceOnAccess(refused('EACCES', 'open', '/'), undefined), '');
});
