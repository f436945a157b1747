/**
 * Replaces a store that no process has open with a copy.
 *
 *   copy ─▶ strata.db.restoring ─checked─▶ strata.db.restored-TIME
 *        ─▶ strata.db becomes strata.db.replaced-TIME
 *        ─▶ strata.db.restored-TIME becomes strata.db
 *
 * Once strata.db.restored-TIME exists, the next start or restore finishes this one, however often
 * it is cut short.
 *
 * K2 The log of the old database never lies beside the new database.
 * K3 The old store is kept, and so is the copy.
 */
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { failpoint } from '../../diagnostics/failpoint.js';
import { CacheError } from '../../domain/errors.js';
import { copyDatabase, removeDatabase, rename } from './backup.js';
import { damagedBefore, isDamage } from './damage.js';
import { openWriter } from './database.js';
import { inspect } from './inspect.js';
import { lockStore } from './lock.js';
import { bytesOf, databaseName, freeName, namesOf, moveAside } from './store-files.js';

const restored = `${databaseName}.restored-`;
const replaced = `${databaseName}.replaced-`;

/**
 * Returns where the old store now is, if there was one, and the resourceVersion of the restored
 * store. If this throws CacheError, nothing has changed.
 */
export async function restoreStore(
  file: string,
  directory: string,
  { migrations, nowMs }: Readonly<{ migrations: string; nowMs: number }>,
): Promise<Readonly<{ before: string | undefined; resourceVersion: string | undefined }>> {
  if (bytesOf(file) === undefined) throw new CacheError(`${file} does not exist`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const copy = join(directory, `${databaseName}.restoring`);
  // Every restore deletes `strata.db.restoring`. If an earlier restore was cut short, this restore
  // first moves `strata.db` aside and renames `restored-TIME` to `strata.db`. So `file`, which is
  // read later, must be none of these.
  const cutShort = namesOf(directory, restored).map((name) => join(directory, name));
  const passing = [copy, ...cutShort, ...(cutShort.length > 0 ? [join(directory, databaseName)] : [])];
  if (passing.some((each) => bytesOf(each) !== undefined && realpathSync(each) === realpathSync(file)))
    throw new CacheError(`this restore would delete or move ${file}, because an earlier restore was cut short: rename that file first`);
  const lock = lockStore(directory);
  try {
    finishRestore(directory);
    // If a start was cut short while it moved a damaged database aside, this moves the log, too.
    damagedBefore(directory);
    removeDatabase(copy);
    await copyDatabase(file, copy);
    const { checks, resourceVersion } = inspect(copy, migrations, { thorough: true });
    const [problem] = checks.flatMap(({ problems }) => problems);
    if (problem !== undefined) throw new CacheError(`${file} is damaged and was not restored: ${problem}`);
    // Switches the copy to WAL mode here, because a start that had to do so would wait for readers
    // of the copy.
    openWriter(copy).close();
    failpoint('restore.checked');
    rename(copy, join(directory, restored + freeName(directory, replaced, nowMs).slice(replaced.length)));
    failpoint('restore.named');
    return { before: finishRestore(directory), resourceVersion };
  } catch (error) {
    if (isDamage(error)) throw new CacheError(`${file} is damaged and was not restored`, { cause: error });
    throw error;
  } finally {
    removeDatabase(copy);
    lock.release();
  }
}

/**
 * Finishes a restore that was cut short. Returns where the old store now is, if there was one. The
 * caller holds the lock.
 */
export function finishRestore(directory: string): string | undefined {
  const name = namesOf(directory, restored).at(-1);
  if (name === undefined) return undefined;
  const before = replaced + name.slice(restored.length);
  moveAside(directory, before);
  failpoint('restore.aside');
  rename(join(directory, name), join(directory, databaseName));
  failpoint('restore.placed');
  return bytesOf(join(directory, before)) === undefined ? undefined : join(directory, before);
}
