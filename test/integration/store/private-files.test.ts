/** Only the owner can read the files of a cache (V8). */
import { chmodSync, chownSync, copyFileSync, lstatSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyDatabase } from '../../../src/store/sqlite/backup.js';
import { inspectStopped } from '../../../src/store/sqlite/inspect.js';
import { ownMigrations } from '../../../src/store/sqlite/migrate.js';
import { restoreStore } from '../../../src/store/sqlite/restore.js';
import { test } from '../../support/test.js';
import { openTestStore, storeDirectory } from '../../support/test-store.js';

function modesIn(directory: string): Record<string, string> {
  const files = readdirSync(directory).filter((name) => lstatSync(join(directory, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, (statSync(join(directory, name)).mode & 0o777).toString(8)]));
}

test('only the owner can access the files of a store, even in a folder that others may list', async (t) => {
  const directory = storeDirectory(t);
  chmodSync(directory, 0o755);

  const store = await openTestStore(directory);
  t.teardown(() => store.close());

  const modes = modesIn(directory);
  for (const name of ['strata.db', 'strata.db-wal', 'strata.db-shm', 'strata.lock']) t.is(modes[name], '600', name);
  t.deepEqual(new Set(Object.values(modes)), new Set(['600']));
  t.is(statSync(directory).mode & 0o777, 0o755, 'an existing folder keeps its mode');
});

test('permissions of existing files and copies are tightened; other files, and targets of links, stay as they are', async (t) => {
  const directory = storeDirectory(t);
  const first = await openTestStore(directory);
  await first.close();
  copyFileSync(join(directory, 'strata.db'), join(directory, 'strata.db.monday'));
  for (const name of ['elsewhere', 'other.txt']) writeFileSync(join(directory, name), '');
  symlinkSync('elsewhere', join(directory, 'strata.link'));
  for (const name of readdirSync(directory)) chmodSync(join(directory, name), 0o644);

  const second = await openTestStore(directory);
  t.teardown(() => second.close());

  const { elsewhere, 'other.txt': other, ...ours } = modesIn(directory);
  t.deepEqual([elsewhere, other], ['644', '644']);
  t.deepEqual(new Set(Object.values(ours)), new Set(['600']));
  t.true('strata.db.monday' in ours);
});

test('files that root creates in the folder of another user belong to that user: a lock of `strata check`, a store of `strata restore`', async (t) => {
  if (process.getuid?.() !== 0) {
    t.log('SKIPPED: only root can give files away');
    t.pass();
    return;
  }
  const [directory, backup] = [storeDirectory(t), join(storeDirectory(t), 'backup.db')];
  const first = await openTestStore(directory);
  await first.close();
  await copyDatabase(join(directory, 'strata.db'), backup);
  rmSync(join(directory, 'strata.lock'));
  for (const name of ['.', 'strata.db']) chownSync(join(directory, name), 4711, 4712);
  const owners = (): string[] => readdirSync(directory).map((name) => `${name} ${statSync(join(directory, name)).uid}`);

  inspectStopped(directory, ownMigrations, { thorough: true });
  t.deepEqual(
    owners().filter((each) => !each.endsWith(' 4711')),
    [],
  );
  await restoreStore(backup, directory, { migrations: ownMigrations, nowMs: 0 });

  t.deepEqual(
    owners().filter((each) => !each.endsWith(' 4711')),
    [],
  );
  t.deepEqual(statSync(backup).uid, 0);
});

test('only the owner can access a folder that the store creates', async (t) => {
  const directory = join(storeDirectory(t), 'made', 'here');
  const store = await openTestStore(directory);
  t.teardown(() => store.close());

  t.is(statSync(directory).mode & 0o777, 0o700);
});
