/**
 * Where a link resumes: the last position that this cache sent, as the other end sends it back.
 * This store made the text, but a peer sends it, so it can be anything.
 */
import type { Revisions } from '../domain/store-port.js';
import { isResourceVersion, type Revision } from '../domain/revision.js';

/**
 * The revision here that a position names. Undefined if the changes after it cannot be sent: the
 * position is of another life of this store, of another store, or behind the log.
 */
export function locatePosition(revisions: Revisions, position: string): Revision | undefined {
  if (!isResourceVersion(position)) return undefined;
  const located = revisions.locatePosition(position);
  return located.kind === 'ours' && located.revision >= revisions.compacted ? located.revision : undefined;
}
