/**
 * The canonical paths that moved at the last revision of a chunk. No earlier revision of a chunk
 * moves a path (A3 in tail.ts).
 */
import type { Change, MovedPath } from '../domain/change.js';
import type { Key } from '../domain/key.js';
import type { Revision } from '../domain/revision.js';

/** By logical cluster (`placeOf`): its path before the revision, and after it. */
export type PathMoves = Readonly<{ revision: Revision; byPlace: ReadonlyMap<string, Readonly<{ key: Key }> & MovedPath> }>;

export function pathMovesIn(changes: readonly Change[]): PathMoves {
  const byPlace = new Map<string, Readonly<{ key: Key }> & MovedPath>();
  const revision = changes.at(-1)?.revision ?? 0;
  for (let i = changes.length - 1; changes[i]?.revision === revision; i -= 1) {
    const { key, movedPath } = changes[i]!;
    // One revision may move a path several times: keep the first `before` and the last `after`.
    if (movedPath !== undefined)
      byPlace.set(placeOf(key), { key, before: movedPath.before, after: (byPlace.get(placeOf(key)) ?? movedPath).after });
  }
  return { revision, byPlace };
}

/** The text of a logical cluster on a shard. */
export function placeOf({ shard, cluster }: Pick<Key, 'shard' | 'cluster'>): string {
  return `${shard}|${cluster}`;
}
