/**
 * Puts a copy in the place of a store that nobody has open.
 *
 *   copy ─▶ strata.db.restoring ─checked─▶ strata.db.restored-TIME ─▶ strata.db becomes strata.db.replaced-TIME ─▶ strata.db
 *                                                   └── from here on the next start or restore finishes it, however often it is cut short
 *
 * K2 The log of the old database never meets the new one. K3 What was there is kept, and so is the copy.
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
import { bytesOf, databaseName, freeName, namesOf, setAside } from './store-files.js';

const restored = `${databaseName}.restored-`;
const replaced = `${databaseName}.replaced-`;

/** Where the old store lies now, if there was one, and the state of the restored one. Throws a CacheError, and then nothing has changed. */
export async function restoreStore(
  file: string,
  directory: string,
  { migrations, nowMs }: Readonly<{ migrations: string; nowMs: number }>,
): Promise<Readonly<{ before: string | undefined; resourceVersion: string | undefined }>> {
  if (bytesOf(file) === undefined) throw new CacheError(`${file} is not there`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const copy = join(directory, `${databaseName}.restoring`);
  // A restore removes the first. Of one that was cut short it puts the next in the place of the last, before it looks at the file.
  const cutShort = namesOf(directory, restored).map((name) => join(directory, name));
  const passing = [copy, ...cutShort, ...(cutShort.length > 0 ? [join(directory, databaseName)] : [])];
  if (passing.some((each) => bytesOf(each) !== undefined && realpathSync(each) === realpathSync(file)))
    throw new CacheError(`${file} is of a restore that was cut short, or is to make way for it: give it another name first`);
  const lock = lockStore(directory);
  try {
    finishRestore(directory);
    // Its log belongs to it, where a start was cut short before that had moved.
    damagedBefore(directory);
    removeDatabase(copy);
    await copyDatabase(file, copy);
    const { checks, resourceVersion } = inspect(copy, migrations, { thorough: true });
    const [problem] = checks.flatMap(({ problems }) => problems);
    if (problem !== undefined) throw new CacheError(`${file} is damaged and was not restored: ${problem}`);
    // With a log of its own, as a store has it: a start need not wait for whoever reads it then.
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

/** Finishes a restore that was cut short; returns where the old store lies now, if there was one. The lock is held. */
export function finishRestore(directory: string): string | undefined {
  const name = namesOf(directory, restored).at(-1);
  if (name === undefined) return undefined;
  const before = replaced + name.slice(restored.length);
  setAside(directory, before);
  failpoint('restore.aside');
  rename(join(directory, name), join(directory, databaseName));
  failpoint('restore.placed');
  return bytesOf(join(directory, before)) === undefined ? undefined : join(directory, before);
}
