import type { Refusal } from './errors.js';
import type { Key } from './key.js';
import type { Body, StoredObject } from './object.js';
import type { CanonicalPath } from './cluster.js';
import type { Revision } from './revision.js';

/**
 * A plain writer's request for one key, after admission. `expect`: the state that the committer
 * must find: 'absent' for a create, a revision for an update of exactly that state, 'any' for a
 * delete of any state.
 *
 * A write to a shard that is not local makes it local, with a term above every former term. If the
 * shard's origin is another cache, the write needs `takes`. If a pusher has or had the shard, a
 * write makes the slice unsynced, so that the pusher syncs it again. A write of the shard itself
 * (`bySource`), or of kept names only (`keeps`, kept-names.ts), does not. Writes with `keeps` do
 * not confirm the object in a sync under way, because the shard may not have it any more.
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

/**
 * The result of a mutation. `written` is durable; `object` is the new state, or the last state of a
 * deleted key.
 */
export type Outcome =
  | Readonly<{ kind: 'written'; revision: Revision; resourceVersion: string; object: StoredObject }>
  | Readonly<{ kind: 'refused'; why: 'exists' | 'absent' | 'changed' | 'elsewhere' }>
  /** Nothing was decided or stored: the queue is full, or the disk accepts no writes. */
  | Readonly<{ kind: 'unavailable'; refusal: Refusal }>
  /** The storage backend has not answered: it may have stored the write, or may still store it. */
  | Readonly<{ kind: 'unknown'; refusal: Refusal }>;

/**
 * Decides a mutation. `current`: the present revision of its key; undefined if there is no object.
 */
export function decide(mutation: Mutation, current: Revision | undefined): 'write' | 'exists' | 'absent' | 'changed' {
  if (mutation.expect === 'absent') return current === undefined ? 'write' : 'exists';
  if (current === undefined) return 'absent';
  return mutation.expect === 'any' || mutation.expect === current ? 'write' : 'changed';
}
