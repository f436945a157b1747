import { parseCanonicalPath, pathAnnotation, type CanonicalPath } from '../domain/cluster.js';
import { member, valueText, type ObjectText } from './object-text.js';

/** The canonical path in an object's annotation; undefined if absent or malformed. */
export function canonicalPathIn({ bytes, annotations }: ObjectText): CanonicalPath | undefined {
  const found = member(annotations, pathAnnotation);
  const value: unknown = found === undefined ? undefined : JSON.parse(valueText(bytes, found));
  return typeof value === 'string' ? parseCanonicalPath(value) : undefined;
}
