/** Damages a file as a disk may: flips a random bit, or fills a random sector with random bytes. */
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import type { Random } from '../../support/crash/random.js';

const sectorBytes = 512;

/** Returns what it has done, for the message of a failure. */
export function damage(file: string, random: Random): string {
  const fd = openSync(file, 'r+');
  try {
    const { size } = fstatSync(fd);
    const isSector = random.chance(0.25);
    const length = isSector ? Math.min(sectorBytes, size) : 1;
    const offset = random.below(Math.max(1, size - length));
    const bytes = Buffer.alloc(length);
    readSync(fd, bytes, 0, length, offset);
    if (isSector) for (let index = 0; index < length; index += 1) bytes[index] = random.below(256);
    else bytes[0] = bytes[0]! ^ (1 << random.below(8));
    writeSync(fd, bytes, 0, length, offset);
    return `${isSector ? 'a sector' : 'a bit'} at ${offset} of ${size}`;
  } finally {
    closeSync(fd);
  }
}
