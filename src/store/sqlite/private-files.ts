/**
 * Only the owner may access the files of a store, whatever the permissions of the directory. SQLite
 * creates a database with the umask's mode, and gives its WAL and shared memory the same mode. So
 * this file creates the database before SQLite does.
 *
 * It opens no existing file, because closing one would release the locks that this process has on
 * that file (POSIX), including SQLite's.
 */
import { chmodSync, closeSync, fchownSync, fstatSync, openSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Log } from '../../diagnostics/log.js';

const privateMode = 0o600;
const othersMask = 0o077;
const permissionsMask = 0o7777;
/** Also matches copies that an operator keeps beside the store's files. */
const ours = /^strata\./;

/**
 * Creates an empty file if there is none. A file that root creates gets the directory's owner,
 * because the server may run as that user.
 */
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

/**
 * Removes the permissions of other users from existing files. Skips symbolic links, because their
 * targets may belong to somebody else.
 */
export function restrictPermissions(directory: string, { log }: Readonly<{ log: Log }>): void {
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
