import type { CanonicalPath } from './cluster.js';
import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { Revision } from './revision.js';

/**
 * What happened to one key at one revision: a row of the change log, as its readers see it. `created` marks a put of a key
 * that held nothing. `previous` reads the content that was replaced, when someone needs it: a DELETED event carries the last
 * content, and whether an object left a selector depends on what it was.
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

/** The change moved the canonical path of its logical cluster on its shard; undefined where there was or is none. */
export type MovedPath = Readonly<{ before: CanonicalPath | undefined; after: CanonicalPath | undefined }>;

/** Changes that became durable together, in rising revision. All of them become visible in one tick. */
export type Commit = Readonly<{
  revision: Revision;
  changes: readonly Change[];
  /** Canonical paths whose logical clusters changed with this commit. */
  movedPaths: readonly string[];
  /** Revisions of deletes that nobody asked for by name: a full sync no longer named the key, or its shard was cleared. */
  swept: ReadonlySet<Revision>;
}>;
