/** What the agent needs of ClusterCachedResources: which slice they belong to, and which objects of their logical clusters they add. */
import { parseClusterName, type ClusterName } from '../domain/cluster.js';
import { parseDeclaration } from '../domain/declaration.js';
import { labelKeyFlaws, labelValueFlaws } from '../domain/label-syntax.js';
import type { Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Collection } from '../kube/collection.js';
import type { Labels, SourceObject } from '../kube/source-object.js';
import type { StampedType } from './stamp.js';

export type CachedResource = Readonly<{
  resource: Resource;
  version: string;
  kind: string;
  cluster: ClusterName;
  matchLabels: Labels;
  /** Its objects leave the cache as soon as its deletion is asked for: kcp purges them before it removes the finalizer. */
  deleting: boolean;
}>;

/** `needsNoDeclaration`: whether the type stands in the table of types. */
export type DeclaringShard = Readonly<{ shard: ShardName; needsNoDeclaration: (type: Pick<Resource, 'group' | 'resource'>) => boolean }>;

/**
 * `unknown` while it declares no type: kcp writes kind, scope and identity into it step by step. `built-in` when the type is one
 * that every cache has, which needs no declaration.
 */
export function readCachedResource(
  { text, cluster, name, deleting }: SourceObject,
  { shard, needsNoDeclaration }: DeclaringShard,
): CachedResource | 'unknown' | 'built-in' {
  const declaration = parseDeclaration({ shard, cluster, name }, text.bytes);
  const ofCluster = parseClusterName(cluster);
  if (declaration === undefined || ofCluster === undefined) return 'unknown';
  const { group, resource, identity, version, kind } = declaration;
  if (needsNoDeclaration({ group, resource })) return 'built-in';
  return {
    resource: { group, resource, identity },
    version,
    kind,
    cluster: ofCluster,
    matchLabels: matchLabelsOf(text.bytes),
    deleting,
  };
}

/**
 * What is read for those of one type and logical cluster. One is served by the shard, which selects itself. Of several, whose selections may overlap,
 * all is read, and what none of them selects is passed over: an object that two select leaves with the second. The first says the version.
 * So is what one selects by labels that no object can have: kcp compares them, and in a URL they might be read as another selector.
 */
export function readingOf([first, ...others]: readonly [CachedResource, ...CachedResource[]]): Readonly<{
  collection: Collection;
  type: StampedType;
  /** Undefined: every object that is read. */
  selectors: readonly Labels[] | undefined;
}> {
  const { cluster, version, kind } = first;
  const { group, resource } = first.resource;
  const isSame = ({ matchLabels }: CachedResource): boolean => formatLabels(matchLabels) === formatLabels(first.matchLabels);
  const isOne = others.every(isSame) && first.matchLabels.every(isLabel);
  return {
    collection: { cluster, group, version, resource, identityOf: undefined, labelSelector: isOne ? formatLabels(first.matchLabels) : '' },
    type: { group, version, kind },
    selectors: isOne ? undefined : [first, ...others].map(({ matchLabels }) => matchLabels),
  };
}

/** kcp reads `matchLabels` and nothing else. */
function matchLabelsOf(bytes: Uint8Array): Labels {
  const object = JSON.parse(new TextDecoder().decode(bytes)) as { spec?: { labelSelector?: { matchLabels?: unknown } | null } | null };
  const matchLabels = object.spec?.labelSelector?.matchLabels;
  if (typeof matchLabels !== 'object' || matchLabels === null) return [];
  return Object.entries(matchLabels).map(([key, value]) => [key, String(value)]);
}

function isLabel([key, value]: Labels[number]): boolean {
  return labelKeyFlaws(key).length === 0 && labelValueFlaws(value).length === 0;
}

/** As in a URL's `labelSelector`. */
function formatLabels(labels: Labels): string {
  return labels
    .map(([key, value]) => `${key}=${value}`)
    .toSorted()
    .join(',');
}
