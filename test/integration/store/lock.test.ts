import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from '../../support/test.js';
import { CacheError } from '../../../src/domain/errors.js';
import { openTestStore, storeDirectory } from '../../support/test-store.js';
import { spawn } from '../../support/children.js';

test('a second server on the same directory is refused with a reason, until the first is closed', async (t) => {
  const directory = storeDirectory(t);
  const first = await openTestStore(directory);

  await t.throwsAsync(openTestStore(directory), {
    instanceOf: CacheError,
    message: `the data directory ${directory} is in use by another server`,
  });
  await first.close();
  const second = await openTestStore(directory);
  await second.close();

  t.pass();
});

test('the lock holds between processes, and is gone with a process that was killed', async (t) => {
  const directory = storeDirectory(t);
  const child = spawn(process.execPath, [fileURLToPath(new URL('./hold-store.js', import.meta.url)), directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');

  await t.throwsAsync(openTestStore(directory), { message: /is in use by another server/ });
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;

  const store = await openTestStore(directory);
  t.is(store.revisions.published, 1, 'what the other acknowledged is there');
  await store.close();
});

test('when a lock fails for another reason than a running server, the error names that reason', async (t) => {
  const directory = storeDirectory(t);
  writeFileSync(join(directory, 'strata.lock'), 'no database, but long enough to be taken for one'.repeat(100));

  await t.throwsAsync(openTestStore(directory), {
    instanceOf: CacheError,
    message: `${join(directory, 'strata.lock')} cannot be locked: file is not a database`,
  });
});

test('a store that cannot be opened releases its lock', async (t) => {
  const directory = storeDirectory(t);
  const store = await openTestStore(directory);
  await store.close();
  const { openWriter } = await import('../../../src/store/sqlite/database.js');
  const database = openWriter(`${directory}/strata.db`);
  database.pragma('user_version = 999');
  database.close();

  for (let i = 0; i < 2; i++) await t.throwsAsync(openTestStore(directory), { message: /newer release/ });
});
