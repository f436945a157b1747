/**
 * Which objects and changes cross a link: applies its link filter, with the canonical paths that objects do not name themselves.
 *
 * A change becomes what the other end must hold: a put of what crosses now, a delete of what crossed before and does no more. An
 * object can leave a link filter without being deleted at its origin, as it can leave a watch's selector.
 */
import type { Change } from '../domain/change.js';
import type { CanonicalPath } from '../domain/cluster.js';
import type { Key } from '../domain/key.js';
import type { StoredObject } from '../domain/object.js';
import type { CanonicalPaths } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';
import type { Slice } from '../domain/slice.js';
import type { LinkFilter } from './link-filter.js';
import { placeOf, type PathMoves } from './path-moves.js';

/** What crosses of a change's key after it, and what crossed before; the latter is not computed where the whole slice crosses. */
export type FilteredChange = Readonly<{ change: Change; left: StoredObject | undefined; came: StoredObject | undefined }>;

/**
 * Remembers a pure function: children with one link filter (equal-filters.ts) get the same commits and the same chunks of the log. Where paths
 * matter, the answer depends on more.
 */
const found = new WeakMap<readonly Change[], WeakMap<LinkFilter, readonly FilteredChange[]>>();

type ChangesParts = FilterParts & Readonly<{ moves?: PathMoves }>;

type PathAt = (key: Key) => CanonicalPath | undefined;

/** `at`: the revision whose canonical paths decide, those on disk if there is none. */
export type FilterParts = Readonly<{ filter: LinkFilter; paths: CanonicalPaths; at?: Revision | undefined }>;

/** The objects that cross, in their order. All are of one slice. */
export async function filterObjects(
  objects: readonly StoredObject[],
  { slice, ...parts }: FilterParts & Readonly<{ slice: Slice }>,
): Promise<readonly StoredObject[]> {
  const { filter } = parts;
  if (filter.isWhole(slice)) return objects;
  const pathAt = await readPaths(
    objects.map(({ key }) => key),
    parts,
  );
  return objects.filter((object) => filter.lets(object, pathAt(object.key)));
}

/**
 * What each change means for the other end, in their order; those that mean nothing are left out. `at`: the revision up to which they were read.
 * `moves`: of the last revision read with them; up to it these paths were others.
 */
export async function filterChanges(changes: readonly Change[], parts: ChangesParts): Promise<readonly FilteredChange[]> {
  const { filter } = parts;
  if (filter.asksPaths) return findCrossings(changes, parts);
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
    if (filter.isWhole(key)) return [{ change, left: undefined, came: object }];
    const path = change.revision === moves?.revision ? pathAt(key) : pathBefore(key);
    const came = object !== undefined && filter.lets(object, path) ? object : undefined;
    if (change.kind === 'put' && change.created) return came === undefined ? [] : [{ change, left: undefined, came }];
    const previous = change.previous();
    const left = previous !== undefined && filter.lets(previous, pathBefore(key)) ? previous : undefined;
    // Its old content is gone where compaction was faster: then it may have crossed, and deleting what is not there does no harm.
    const isNothing = came === undefined && left === undefined && previous !== undefined;
    return isNothing ? [] : [{ change, left, came }];
  });
}

function beforeMoves(pathAt: PathAt, moves: PathMoves | undefined): PathAt {
  if (moves === undefined || moves.byPlace.size === 0) return pathAt;
  return (key) => {
    const move = moves.byPlace.get(placeOf(key));
    return move === undefined ? pathAt(key) : move.before;
  };
}

async function readPaths(keys: readonly Key[], { filter, paths, at }: FilterParts): Promise<PathAt> {
  const asked = new Map(keys.filter((key) => filter.asksPath(key)).map((key) => [placeOf(key), key]));
  if (asked.size === 0) return () => undefined;
  const found = await paths.pathsOf([...asked.values()], at);
  const known = new Map([...asked.keys()].map((place, i) => [place, found[i]]));
  return (key) => known.get(placeOf(key));
}
