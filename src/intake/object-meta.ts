/**
 * The decoded part of a body, which admission needs. Everything else stays text.
 *
 * O1 What is absent, null or empty is the same, as for Go: '' or 0n. A resourceVersion of "0" counts as none.
 * O2 Numbers are read from their text, so an int64 beyond 2^53 is compared exactly.
 */
import { parseCanonicalPath, pathAnnotation, type CanonicalPath } from '../domain/cluster.js';
import { isObject, type Members } from '../domain/members.js';
import { member, valueText, type ObjectText } from '../json/object-text.js';
import { cannotUnmarshal, metaMisfit } from './meta-shape.js';

/** The serving thread decodes it and checks every member: 100 ns a byte where somebody means harm. */
const metadataBytesMax = 512 * 1024;

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
  /** All members as they came, of the right types: the rules of plain writes read the others from here. */
  decoded: Members;
}>;

/** The metadata does not decode. `message` is Go's. */
export class MisfitMeta extends Error {}

/** Throws MisfitMeta. A body without metadata has an empty one. */
export function parseObjectMeta(text: ObjectText): ObjectMeta {
  const found = member(text.top, 'metadata');
  if (found !== undefined && found.valueEnd - found.valueStart > metadataBytesMax)
    throw new MisfitMeta(`metadata: may not be more than ${metadataBytesMax} bytes`);
  const decoded: unknown = found === undefined ? null : JSON.parse(valueText(text.bytes, found));
  const misfit = metaMisfit(decoded);
  if (misfit !== undefined) throw new MisfitMeta(misfit);

  const metadata = isObject(decoded) ? decoded : {};
  const resourceVersion = textOf(metadata, 'resourceVersion');
  return {
    name: textOf(metadata, 'name'),
    generateName: textOf(metadata, 'generateName'),
    namespace: textOf(metadata, 'namespace'),
    uid: textOf(metadata, 'uid'),
    resourceVersion: resourceVersion === '0' ? '' : resourceVersion,
    creationTimestamp: textOf(metadata, 'creationTimestamp'),
    generation: (isObject(decoded) ? parseInteger(text, 'generation') : undefined) ?? 0n,
    labels: textsOf(metadata, 'labels'),
    annotations: textsOf(metadata, 'annotations'),
    deletionGracePeriodSeconds: isObject(decoded) ? parseInteger(text, 'deletionGracePeriodSeconds') : undefined,
    decoded: metadata,
  };
}

/** The canonical path an object claims for its logical cluster; a malformed one counts as none. */
export function pathOf({ annotations }: ObjectMeta): CanonicalPath | undefined {
  const path = annotations.get(pathAnnotation);
  return path === undefined ? undefined : parseCanonicalPath(path);
}

/** An int64 of the metadata; undefined where it is absent or null. `text.metadata` is the one that counts: if there are two, the last one that is an object. */
function parseInteger(text: ObjectText, name: string): bigint | undefined {
  const found = member(text.metadata, name);
  const literal = found === undefined ? 'null' : valueText(text.bytes, found);
  if (literal === 'null') return undefined;
  if (/^-?(?:0|[1-9]\d{0,18})$/.test(literal)) {
    const value = BigInt(literal);
    if (BigInt.asIntN(64, value) === value) return value;
  }
  throw new MisfitMeta(cannotUnmarshal(JSON.parse(literal), `ObjectMeta.${name}`, 'int64'));
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
