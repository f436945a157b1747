/**
 * The content of a file that an operator names, at a start and while the process runs. Only a regular file is read, because only that comes to an end in bounded time: a FIFO
 * holds up whoever opens it until somebody writes to it, and a device such as /dev/zero never ends.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { CacheError } from './domain/errors.js';

const bytesMax = 64 * 1024 * 1024;

/** Throws CacheError for what is no regular file, or has more than 64 MiB, and what the file system throws; the caller names the file. */
export function readRegularFile(path: string): string {
  // Looked at once it is open, because it may be replaced at any time. O_NONBLOCK does not wait for the writer of a FIFO.
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

/** Of a folder the file system says so itself. */
function otherKind(stats: Stats): string | undefined {
  if (stats.isFIFO()) return 'FIFO';
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return 'device';
  return undefined;
}
