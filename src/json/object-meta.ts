/**
 * The decoded part of a body, which admission needs. The rest stays text.
 *
 * O1 As in Go, absent, null and empty are the same: '' or 0n. A resourceVersion of "0" counts as
 *    none.
 * O2 Numbers are read from their text, so an int64 beyond 2^53 is compared exactly.
 */
import { parseCanonicalPath, pathAnnotation, type CanonicalPath } from '../domain/cluster.js';
import { isObject, type Members } from '../domain/base/members.js';
import { member, memberText, valueText, type ObjectText } from './object-text.js';
import { metaMisfit } from './meta-shape.js';

export type ObjectMeta = Readonly<{
  name: string;
  generateName: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string;
  generation: bigint;
  labels: ReadonlyMap<string, string>;
  annotations: ReadonlyMap<string, string>;
  deletionGracePeriodSeconds: bigint | undefined;
  /**
   * All members of the metadata, with valid types. The rules of plain writes read those that are
   * not listed above.
   */
  decoded: Members;
}>;

/** The metadata does not decode. `message` is Go's. */
export class MisfitMeta extends Error {}

/** Throws MisfitMeta. A body without metadata has an empty one. Takes at most 100 ns a byte. */
export function parseObjectMeta(text: ObjectText, bytesMax: number): ObjectMeta {
  const found = member(text.top, 'metadata');
  if (found !== undefined && found.valueEnd - found.valueStart > bytesMax)
    throw new MisfitMeta(`metadata: may not be more than ${bytesMax} bytes`);
  confirmMeta(text);
  const decoded: unknown = found === undefined ? null : JSON.parse(valueText(text.bytes, found));
  const metadata = isObject(decoded) ? decoded : {};
  const integer = (name: string): bigint | undefined => (isObject(decoded) ? integerOf(text, name) : undefined);
  const resourceVersion = textOf(metadata, 'resourceVersion');
  return {
    name: textOf(metadata, 'name'),
    generateName: textOf(metadata, 'generateName'),
    namespace: textOf(metadata, 'namespace'),
    uid: textOf(metadata, 'uid'),
    resourceVersion: resourceVersion === '0' ? '' : resourceVersion,
    creationTimestamp: textOf(metadata, 'creationTimestamp'),
    generation: integer('generation') ?? 0n,
    labels: textsOf(metadata, 'labels'),
    annotations: textsOf(metadata, 'annotations'),
    deletionGracePeriodSeconds: integer('deletionGracePeriodSeconds'),
    decoded: metadata,
  };
}

/** Throws MisfitMeta. */
export function confirmMeta(text: ObjectText): void {
  const misfit = metaMisfit(text);
  if (misfit !== undefined) throw new MisfitMeta(misfit);
}

/** The canonical path that an object claims for its logical cluster; undefined if malformed. */
export function pathOf({ annotations }: ObjectMeta): CanonicalPath | undefined {
  const path = annotations.get(pathAnnotation);
  return path === undefined ? undefined : parseCanonicalPath(path);
}

/**
 * Undefined if absent or null. If there are two `metadata` members, `text.metadata` is the last one
 * that is an object.
 */
function integerOf(text: ObjectText, name: string): bigint | undefined {
  const found = member(text.metadata, name);
  const literal = found === undefined ? 'null' : valueText(text.bytes, found);
  return literal === 'null' ? undefined : BigInt(literal);
}

function textOf(record: Readonly<Record<string, unknown>>, name: string): string {
  const value = record[name];
  return typeof value === 'string' ? value : '';
}

function textsOf(record: Readonly<Record<string, unknown>>, name: string): ReadonlyMap<string, string> {
  const value = record[name];
  const texts = new Map<string, string>();
  if (!isObject(value)) return texts;
  for (const key of Object.keys(value)) {
    const text = value[key];
    if (typeof text === 'string') texts.set(key, text);
  }
  return texts;
}

/** The canonical path in an object's annotation; undefined if absent or malformed. */
export function canonicalPathIn({ bytes, annotations }: ObjectText): CanonicalPath | undefined {
  return parseCanonicalPath(memberText(bytes, annotations, pathAnnotation) ?? '');
}
