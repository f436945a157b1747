/** A disk that is soon full: a tmpfs of its own, where this user may mount one. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';

export const filler = 'filler';

/** A disk of so many MiB; undefined, with a log line, where this user may not mount one. */
export function smallDisk(t: ExecutionContext, mebibytes = 16): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'strata-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    t.log(`SKIPPED: no disk can be mounted here: ${(error as Error).message.split('\n').join(' ')}`);
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const release = (): void => {
    process.removeListener('exit', release);
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true });
  };
  // Unmounts the disk even if the test dies.
  process.once('exit', release);
  t.teardown(release);
  return folder;
}

/** Fills the rest of a disk, down to the last byte. */
export function fill(folder: string): void {
  const fd = openSync(join(folder, filler), 'w');
  try {
    for (const chunk of [Buffer.alloc(65_536), Buffer.alloc(1)]) {
      try {
        for (;;) writeSync(fd, chunk);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      }
    }
  } finally {
    closeSync(fd);
  }
}
