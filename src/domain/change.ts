import type { CanonicalPath } from './cluster.js';
import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { Revision } from './revision.js';

/**
 * What happened to one key at one revision: a row of the change log. `created` marks a put of a key
 * that did not exist. `previous` reads on demand the content before the change. A DELETED event
 * carries that content, which also shows whether the object has left a selector.
 */
export type Change =
  | Readonly<{
      kind: 'put';
      key: Key;
      revision: Revision;
      object: StoredObject;
      created: boolean;
      previous: () => StoredObject | undefined;
      movedPath?: MovedPath;
    }>
  | Readonly<{
      kind: 'delete';
      key: Key;
      revision: Revision;
      resourceVersion: string;
      previous: () => StoredObject | undefined;
      movedPath?: MovedPath;
    }>;

/**
 * The canonical path of a logical cluster on its shard, before and after a change; undefined if
 * there is none.
 */
export type MovedPath = Readonly<{ before: CanonicalPath | undefined; after: CanonicalPath | undefined }>;

/** The index of the first change above the revision, from index `from` on. */
export function firstAbove(changes: readonly (Change | undefined)[], revision: Revision, from = 0): number {
  let [low, high] = [from, changes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (changes[middle]!.revision <= revision) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The size of the body that the change stores. */
export function bytesOf(change: Change): number {
  return change.kind === 'put' ? change.object.body.bytes.length : 0;
}

/** Changes that became durable together, by rising revision. All become visible in one tick. */
export type Commit = Readonly<{
  revision: Revision;
  changes: readonly Change[];
  /** Canonical paths whose logical clusters changed with this commit. */
  movedPaths: readonly string[];
  /**
   * Revisions of deletes that no request named: a full sync no longer contained the key, or its
   * shard was cleared.
   */
  swept: ReadonlySet<Revision>;
}>;
