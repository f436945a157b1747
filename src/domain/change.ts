import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { Revision } from './revision.js';

/**
 * What happened to one key at one revision: a row of the change log, as its readers see it.
 *
 * A put without `previous` created the object. A delete always has the last content, for a DELETED event must carry it
 * (S16); its revision is the delete's own.
 */
export type Change =
  | Readonly<{ kind: 'put'; key: Key; revision: Revision; resourceVersion: string; object: StoredObject; previous: StoredObject | undefined }>
  | Readonly<{ kind: 'delete'; key: Key; revision: Revision; resourceVersion: string; previous: StoredObject }>;

/** Changes that became durable together, in rising revision. All of them become visible in one tick (D3). */
export type Commit = Readonly<{
  revision: Revision;
  changes: readonly Change[];
  /** Canonical paths whose logical clusters changed with this commit. */
  movedPaths: readonly string[];
}>;
