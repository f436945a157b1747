/**
 * A write of an object that its writer must have seen, because it replaces or deletes it. If it is not here, it was in a state of the store that is
 * lost (a cache restored from a snapshot), or the writer has not heard of its end. An informer of kcp never drops what a relist lacks (R24), so that kcp would
 * go on with such writes for ever. Only a DELETED ends that: then kcp creates the object.
 */
import { Refused } from '../domain/errors.js';
import type { Key } from '../domain/key.js';
import type { Watches } from '../domain/ports.js';

export async function writeSeen<Result>(
  { key, dryRun }: Readonly<{ key: Key; dryRun: boolean }>,
  watches: Pick<Watches, 'tellAbsent'>,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof Refused && error.refusal.reason === 'NotFound' && !dryRun) await watches.tellAbsent(key);
    throw error;
  }
}
