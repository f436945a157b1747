/**
 * Reads a file that an operator names, at a start and while the process runs. Only regular files
 * are read, because other reads may never end. Opening a FIFO blocks until somebody writes to it,
 * and a device such as /dev/zero never ends.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { CacheError } from './domain/errors.js';

const bytesMax = 64 * 1024 * 1024;

/**
 * Throws CacheError for a file that is not regular or has more than 64 MiB, and the errors of the
 * file system. The caller names the file.
 */
export function readRegularFile(path: string): string {
  // Check the file after opening it, because it may be replaced at any time. With O_NONBLOCK,
  // opening a FIFO does not wait for a writer.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd);
    const kind = otherKind(stats);
    if (kind !== undefined) throw new CacheError(`a regular file is needed, and this is a ${kind}`);
    if (stats.size > bytesMax) throw new CacheError(`it has ${stats.size} bytes, and may have ${bytesMax}`);
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

/** A folder is not refused here: reading a folder fails with an error that names the cause. */
function otherKind(stats: Stats): string | undefined {
  if (stats.isFIFO()) return 'FIFO';
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return 'device';
  return undefined;
}
