/**
 * Decides which objects and changes cross a link. It applies the link filter, and looks up the
 * canonical paths of objects without a path annotation.
 *
 * An object that crosses becomes a put. One that crossed before the change, and does not after it,
 * becomes a delete. As with the selector of a watch, an object can leave a link filter without
 * being deleted at its origin.
 */
import type { Change, MovedPath } from '../../domain/change.js';
import type { CanonicalPath } from '../../domain/cluster.js';
import { clusterKeyOf, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { CanonicalPaths } from '../../domain/store-port.js';
import type { Revision } from '../../domain/revision.js';
import type { Slice } from '../../domain/slice.js';
import type { LinkFilter } from './link-filter.js';

/**
 * `after`: the object after the change, if it crosses. `before`: the object before the change, if
 * that crossed; not computed where the whole slice crosses.
 */
export type FilteredChange = Readonly<{ change: Change; before: StoredObject | undefined; after: StoredObject | undefined }>;

/**
 * Memoizes a pure function: links with one link filter (link-filters.ts) get the same commits and
 * the same chunks of the log. Where paths matter, the result depends on them too and is not
 * memoized.
 */
const found = new WeakMap<readonly Change[], WeakMap<LinkFilter, readonly FilteredChange[]>>();

type ChangesParts = FilterParts & Readonly<{ moves?: PathMoves }>;

type PathAt = (key: Key) => CanonicalPath | undefined;

/** `at`: the revision whose canonical paths count; without it, those on disk. */
export type FilterParts = Readonly<{ filter: LinkFilter; paths: CanonicalPaths; at?: Revision | undefined }>;

/** Returns the objects that cross, in order. All `objects` must be of one slice. */
export async function filterObjects(
  objects: readonly StoredObject[],
  { slice, ...parts }: FilterParts & Readonly<{ slice: Slice }>,
): Promise<readonly StoredObject[]> {
  const { filter } = parts;
  if (filter.letsAll(slice)) return objects;
  const pathAt = await readPaths(
    objects.map(({ key }) => key),
    parts,
  );
  return objects.filter((object) => filter.lets(object, pathAt(object.key)));
}

/**
 * Returns the filtered changes in order, without those that do not concern the receiver. `at`: the
 * revision up to which the changes were read. `moves`: the paths that moved at the last revision of
 * these changes; earlier changes are filtered by the former path.
 */
export async function filterChanges(changes: readonly Change[], parts: ChangesParts): Promise<readonly FilteredChange[]> {
  const { filter } = parts;
  if (filter.needsPaths) return findCrossings(changes, parts);
  const byFilter = found.get(changes) ?? new WeakMap<LinkFilter, readonly FilteredChange[]>();
  const crossings = byFilter.get(filter) ?? (await findCrossings(changes, parts));
  found.set(changes, byFilter.set(filter, crossings));
  return crossings;
}

async function findCrossings(changes: readonly Change[], parts: ChangesParts): Promise<readonly FilteredChange[]> {
  const { filter, moves } = parts;
  const pathAt = await readPaths(
    changes.map(({ key }) => key),
    parts,
  );
  const pathBefore = beforeMoves(pathAt, moves);
  return changes.flatMap((change): readonly FilteredChange[] => {
    const { key } = change;
    const object = change.kind === 'put' ? change.object : undefined;
    if (filter.letsAll(key)) return [{ change, before: undefined, after: object }];
    const path = change.revision === moves?.revision ? pathAt(key) : pathBefore(key);
    const after = object !== undefined && filter.lets(object, path) ? object : undefined;
    if (change.kind === 'put' && change.created) return after === undefined ? [] : [{ change, before: undefined, after }];
    const previous = change.previous();
    const before = previous !== undefined && filter.lets(previous, pathBefore(key)) ? previous : undefined;
    // If compaction has removed the old content, the old object may have crossed. A delete is then
    // sent, because deleting an object that the receiver does not hold does no harm.
    const isNothing = after === undefined && before === undefined && previous !== undefined;
    return isNothing ? [] : [{ change, before, after }];
  });
}

function beforeMoves(pathAt: PathAt, moves: PathMoves | undefined): PathAt {
  if (moves === undefined || moves.byPlace.size === 0) return pathAt;
  return (key) => {
    const move = moves.byPlace.get(clusterKeyOf(key));
    return move === undefined ? pathAt(key) : move.before;
  };
}

async function readPaths(keys: readonly Key[], { filter, paths, at }: FilterParts): Promise<PathAt> {
  const asked = new Map(keys.filter((key) => filter.needsPath(key)).map((key) => [clusterKeyOf(key), key]));
  if (asked.size === 0) return () => undefined;
  const found = await paths.pathsOf([...asked.values()], at);
  const known = new Map([...asked.keys()].map((place, i) => [place, found[i]]));
  return (key) => known.get(clusterKeyOf(key));
}

/**
 * The canonical paths that moved at the last revision of a chunk. No earlier revision of a chunk
 * moves a path (A3 in tail.ts).
 *
 * By logical cluster (`clusterKeyOf`): its path before the revision, and after it.
 */
type PathMoves = Readonly<{ revision: Revision; byPlace: ReadonlyMap<string, Readonly<{ key: Key }> & MovedPath> }>;

export function pathMovesIn(changes: readonly Change[]): PathMoves {
  const byPlace = new Map<string, Readonly<{ key: Key }> & MovedPath>();
  const revision = changes.at(-1)?.revision ?? 0;
  for (let i = changes.length - 1; changes[i]?.revision === revision; i -= 1) {
    const { key, movedPath } = changes[i]!;
    // One revision may move a path several times: keep the first `before` and the last `after`.
    if (movedPath !== undefined)
      byPlace.set(clusterKeyOf(key), { key, before: movedPath.before, after: (byPlace.get(clusterKeyOf(key)) ?? movedPath).after });
  }
  return { revision, byPlace };
}
