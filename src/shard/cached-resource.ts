/** What the agent needs of a ClusterCachedResource: which slice it belongs to, and which objects of its logical cluster it adds. */
import { kcpTypes } from '../domain/catalogue-kcp.js';
import { parseDeclaration } from '../domain/declaration.js';
import type { Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Collection } from './collection.js';
import type { SourceObject } from './source-object.js';

export type CachedResource = Readonly<{
  resource: Resource;
  kind: string;
  collection: Collection;
  /** Its objects leave the cache as soon as its deletion is asked for: kcp purges them before it removes the finalizer. */
  deleting: boolean;
}>;

/**
 * `unknown` while it declares no type: kcp writes kind, scope and identity into it step by step. `built-in` when the type is one
 * that every cache has, which needs no declaration.
 */
export function readCachedResource(
  { text, cluster, name, deleting }: SourceObject,
  shard: ShardName,
): CachedResource | 'unknown' | 'built-in' {
  const declaration = parseDeclaration({ shard, cluster, name }, text.bytes);
  if (declaration === undefined) return 'unknown';
  const { group, resource, identity, version, kind } = declaration;
  if (kcpTypes.some((type) => type.group === group && type.resource === resource)) return 'built-in';
  return {
    resource: { group, resource, identity },
    kind,
    collection: { cluster, group, version, resource, identityOf: undefined, labelSelector: labelSelectorOf(text.bytes) },
    deleting,
  };
}

/** kcp reads `matchLabels` and nothing else. */
function labelSelectorOf(bytes: Uint8Array): string {
  const object = JSON.parse(new TextDecoder().decode(bytes)) as { spec?: { labelSelector?: { matchLabels?: unknown } | null } | null };
  const matchLabels = object.spec?.labelSelector?.matchLabels;
  if (typeof matchLabels !== 'object' || matchLabels === null) return '';
  return Object.entries(matchLabels)
    .map(([label, value]) => `${label}=${String(value)}`)
    .toSorted()
    .join(',');
}
