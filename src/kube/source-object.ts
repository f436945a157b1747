/**
 * The parts of a server's object that selection and stamping need. Only these members are decoded,
 * from their spans; the text itself is copied unchanged. The reader trusts an API server to write
 * each name once, and UTF-8. The cache checks both.
 */
import { memberText, memberValue, type Members, nestingMax, type ObjectText, scanObject } from '../json/object-text.js';

export type SourceObject = Readonly<{
  text: ObjectText;
  cluster: string;
  /** '' for a cluster-scoped object. */
  namespace: string;
  name: string;
  uid: string;
  resourceVersion: string;
  /** The shard that a cache has written into it; '' if the object is not from a cache. */
  shard: string;
  /** Whether its deletion was requested. */
  deleting: boolean;
  hasFinalizers: boolean;
  /** Whether it has the annotation by which kcp marks RBAC and logical clusters for replication. */
  marked: boolean;
}>;

export type Labels = readonly (readonly [key: string, value: string])[];

/** Decodes the labels in each call. */
export function labelsOf({ text: { bytes, metadata } }: SourceObject): ReadonlyMap<string, unknown> {
  const found = memberValue(bytes, metadata, 'labels');
  return new Map(Object.entries(typeof found === 'object' && found !== null ? found : {}));
}

/** Throws NotJson. */
export function readSourceObject(bytes: Uint8Array): SourceObject {
  const text = scanObject(bytes, nestingMax);
  const { metadata, annotations } = text;
  const finalizers = memberValue(bytes, metadata, 'finalizers');
  return {
    text,
    cluster: textOf(bytes, annotations, 'kcp.io/cluster'),
    namespace: textOf(bytes, metadata, 'namespace'),
    name: textOf(bytes, metadata, 'name'),
    uid: textOf(bytes, metadata, 'uid'),
    resourceVersion: textOf(bytes, metadata, 'resourceVersion'),
    shard: textOf(bytes, annotations, 'kcp.io/shard'),
    deleting: textOf(bytes, metadata, 'deletionTimestamp') !== '',
    hasFinalizers: Array.isArray(finalizers) && finalizers.length > 0,
    marked: textOf(bytes, annotations, 'internal.kcp.io/replicate') !== '',
  };
}

function textOf(bytes: Uint8Array, members: Members | undefined, name: string): string {
  return memberText(bytes, members, name) ?? '';
}
