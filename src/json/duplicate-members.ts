/** Members that appear twice in an object. JSON allows it, and JSON readers use the last one. */
import { entryOf } from '../domain/base/entry-of.js';
import type { Members, ObjectText } from './object-text.js';

const comparedMax = 16;

/**
 * Repeated names in the top level, the metadata, the annotations or the labels, as dotted paths.
 */
export function duplicates(text: ObjectText): readonly string[] {
  return [
    ...repeated(text.top, ''),
    ...repeated(text.metadata, 'metadata.'),
    ...repeated(text.annotations, 'metadata.annotations.'),
    ...repeated(text.labels, 'metadata.labels.'),
  ];
}

/** Remembers results, because the reader and the composer of a text both need them. */
const withDuplicates = new WeakMap<ObjectText, boolean>();

export function hasDuplicates(text: ObjectText): boolean {
  const { top, metadata, annotations, labels } = text;
  const find = (): boolean => [top, metadata, annotations, labels].some((members) => members !== undefined && hasRepeats(members));
  return entryOf(withDuplicates, text, find);
}

/** Most objects have few members, so comparing them pairwise is faster than building a set. */
export function hasRepeats({ list }: Members): boolean {
  if (list.length > comparedMax) {
    const names = new Set<string>();
    for (const { name } of list) names.add(name);
    return names.size < list.length;
  }
  for (let i = 1; i < list.length; i += 1) {
    const name = list[i]?.name;
    for (let j = 0; j < i; j += 1) if (list[j]?.name === name) return true;
  }
  return false;
}

function repeated(members: Members | undefined, prefix: string): string[] {
  if (members === undefined || !hasRepeats(members)) return [];
  const seen = new Set<string>();
  return members.list.filter(({ name }) => seen.has(name) || !seen.add(name)).map(({ name }) => prefix + name);
}
