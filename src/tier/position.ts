/**
 * Where a link resumes: the last position that the other end was sent, as it remembers it. It is a text of this store's, but it comes
 * from a peer.
 */
import type { Revisions } from '../domain/ports.js';
import { isResourceVersion, type Revision } from '../domain/revision.js';

/**
 * The revision here that a position names. Undefined when the changes after it cannot be sent: it is of another life of this store, of another
 * store, or behind the log.
 */
export function locatePosition(store: Revisions, position: string): Revision | undefined {
  if (!isResourceVersion(position)) return undefined;
  const located = store.locate(position);
  return located.kind === 'ours' && located.revision >= store.compacted ? located.revision : undefined;
}
