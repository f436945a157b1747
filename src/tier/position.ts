/**
 * Where a link resumes: the last position sent to the other end, as that end remembers it. This store wrote the text, but a peer sends
 * it.
 */
import type { Revisions } from '../domain/store-port.js';
import { isResourceVersion, type Revision } from '../domain/revision.js';

/**
 * The revision here that a position names. Undefined when the changes after it cannot be sent: it is of another life of this store, of another
 * store, or behind the log.
 */
export function locatePosition(revisions: Revisions, position: string): Revision | undefined {
  if (!isResourceVersion(position)) return undefined;
  const located = revisions.locatePosition(position);
  return located.kind === 'ours' && located.revision >= revisions.compacted ? located.revision : undefined;
}
