import type { Refusal } from './errors.js';
import type { Key } from './key.js';
import type { Body, StoredObject } from './object.js';
import type { CanonicalPath } from './cluster.js';
import type { Revision } from './revision.js';

/**
 * What a writer over plain HTTP asks of one key, already admitted. `expect` is what the key must hold when its turn comes:
 * 'absent' for a create, a revision for an update of exactly that state, 'any' to delete whatever is there. It makes a shard that nobody
 * has local. It takes a shard that comes from a neighbour only if it `takes` it, with a term above all it had. Where a shard has a pusher, what others
 * write makes its slice count as not synced, unless it comes from the shard itself (`bySource`), or changes kept names alone (`keeps`, kept-names.ts): whether the shard still
 * has the object, that does not say.
 */
export type Mutation =
  | Readonly<{
      kind: 'put';
      key: Key;
      body: Body;
      path: CanonicalPath | undefined;
      expect: 'absent' | Revision;
      takes?: boolean;
      bySource?: boolean;
      keeps?: boolean;
    }>
  | Readonly<{ kind: 'delete'; key: Key; expect: 'any' | Revision; takes?: boolean; bySource?: boolean }>;

/** What became of a mutation. `written` is durable; `object` is the new state, or the last one of a deleted key. */
export type Outcome =
  | Readonly<{ kind: 'written'; revision: Revision; resourceVersion: string; object: StoredObject }>
  | Readonly<{ kind: 'refused'; why: 'exists' | 'absent' | 'changed' | 'elsewhere' }>
  /** Nothing was decided or stored: the queue is full, or the disk takes nothing. */
  | Readonly<{ kind: 'unavailable'; refusal: Refusal }>
  /** The store's own storage has not answered: it may be written, or may yet be. */
  | Readonly<{ kind: 'unknown'; refusal: Refusal }>;

/**
 * Decides a mutation against the state of its key when its turn comes; `current` is the revision of the stored
 * object, or undefined when there is none.
 */
export function decide(mutation: Mutation, current: Revision | undefined): 'write' | 'exists' | 'absent' | 'changed' {
  if (mutation.expect === 'absent') return current === undefined ? 'write' : 'exists';
  if (current === undefined) return 'absent';
  return mutation.expect === 'any' || mutation.expect === current ? 'write' : 'changed';
}
