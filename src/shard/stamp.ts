/**
 * The text that is pushed: the shard's own, byte for byte, except for what kcp's replication
 * controller changes.
 *
 * T1 `metadata.resourceVersion` is removed, because it is the shard's and not the cache's.
 * T2 Annotations with the version and uid of the original are added. Unlike kcp's controller, which
 *    writes the version only on creation, the agent updates both at every change.
 * T3 `kind` and `apiVersion` are added if the shard omits them, as it does in lists of RBAC and
 *    admission types.
 * T4 `kcp.io/shard` and `kcp.io/cluster` are left to the cache, which knows the shard of the
 *    session.
 */
import { formatApiVersion } from '../domain/resource.js';
import { member, type ObjectText } from '../json/object-text.js';
import { applyEdits, mapEdits, mergeEdits, removals, type Edit } from '../json/text-edits.js';
import type { SourceObject } from '../kube/source-object.js';

export type StampedType = Readonly<{ group: string; version: string; kind: string }>;

const dropped: ReadonlySet<string> = new Set(['resourceVersion']);

/** An object without metadata is returned unchanged; the cache refuses it. */
export function stamp({ text, uid, resourceVersion }: SourceObject, type: StampedType): Uint8Array {
  if (text.metadata === undefined) return text.bytes;
  const annotations = {
    'cache.kcp.io/original-resource-UID': uid,
    'cache.kcp.io/original-resource-version': resourceVersion,
  };
  const edits = [
    ...typeEdits(text, type),
    ...removals(text.metadata, dropped),
    ...mapEdits(text, text.metadata, 'annotations', annotations),
  ];
  return applyEdits(text.bytes, mergeEdits(edits));
}

function typeEdits({ top }: ObjectText, { group, version, kind }: StampedType): readonly Edit[] {
  const values = { kind, apiVersion: formatApiVersion(group, version) };
  const at = top.start + 1;
  return Object.entries(values)
    .filter(([name]) => member(top, name) === undefined)
    .map(([name, value]) => ({ start: at, end: at, text: `"${name}":${JSON.stringify(value)},` }));
}
