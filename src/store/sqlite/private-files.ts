/**
 * The files of a store belong to their owner alone, whatever their folder allows. SQLite makes a file as the umask lets it, and its
 * WAL and shared memory with the mode of the database. So the database is made before SQLite sees it.
 *
 * Existing files are not opened here: closing one would release the locks that this process has on it (POSIX), SQLite's among them.
 */
import { chmodSync, closeSync, fchownSync, fstatSync, openSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Log } from '../../diagnostics/log.js';

const privateMode = 0o600;
const othersMask = 0o077;
const permissionsMask = 0o7777;
/** Also of copies that an operator keeps beside them. */
const ours = /^strata\./;

/** Makes an empty file where there is none. What root makes belongs to the owner of its folder, as whom the server may run. */
export function ensurePrivate(file: string): void {
  try {
    const made = openSync(file, 'wx', privateMode);
    const { uid, gid } = statSync(dirname(file));
    if (fstatSync(made).uid === 0 && uid !== 0) fchownSync(made, uid, gid);
    closeSync(made);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Takes other users' permissions off older files. Links are left alone: what they lead to may be anybody's. */
export function tighten(directory: string, { log }: Readonly<{ log: Log }>): void {
  for (const { name } of readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isFile() && ours.test(entry.name))) {
    const file = join(directory, name);
    try {
      const { mode } = statSync(file);
      if ((mode & othersMask) !== 0) chmodSync(file, mode & permissionsMask & ~othersMask);
    } catch (error) {
      log.warn('store.file-open-to-others', { file, error });
    }
  }
}
