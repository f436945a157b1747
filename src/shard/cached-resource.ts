/**
 * The parts of ClusterCachedResources that the agent needs: which slice they declare, and which
 * objects of their logical clusters belong to it.
 */
import { parseClusterName, type ClusterName } from '../domain/cluster.js';
import { parseDeclaration } from '../domain/catalogue/declaration.js';
import { labelKeyFlaws, labelValueFlaws } from '../domain/syntax/label-syntax.js';
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
  /**
   * Whether deletion was requested. The declared objects then leave the cache at once, as kcp
   * purges them before it removes the finalizer.
   */
  deleting: boolean;
}>;

/** `needsNoDeclaration`: whether the type is in the table of types. */
export type DeclaringShard = Readonly<{ shard: ShardName; needsNoDeclaration: (type: Pick<Resource, 'group' | 'resource'>) => boolean }>;

/**
 * `unknown` while the object declares no type: kcp writes kind, scope and identity into it step by
 * step. `built-in` if every cache has the type without a declaration.
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
 * How to read the objects that the ClusterCachedResources of one type and logical cluster select.
 *
 * If there is one selector, the shard applies it. If there are several, which may overlap, the
 * agent reads all objects and skips those that none selects. So an object that two selectors match
 * leaves the cache only once neither matches. The first ClusterCachedResource gives the version.
 *
 * The agent also reads all objects if a selector has labels that no object can have. In a URL such
 * labels might be read as another selector, while kcp compares them as they are.
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

/** Formats labels as a URL's `labelSelector`. */
function formatLabels(labels: Labels): string {
  return labels
    .map(([key, value]) => `${key}=${value}`)
    .toSorted()
    .join(',');
}
