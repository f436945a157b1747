/**
 * An object or a collection, as a controller names it: by type, logical cluster or canonical path,
 * and name. The form of `cluster` shows whether it is a name or a path, as in kcp's own look-ups.
 *
 * R1 No name changes the URL around it. The names '', '.' and '..' would read the collection or a
 *    path above it, so they are rejected.
 */
import { parseCanonicalPath, parseClusterName } from '../domain/cluster.js';
import { pathSegmentFlaws } from '../domain/syntax/name-syntax.js';
import { parseShardName } from '../domain/shard.js';

export type CollectionRef = Readonly<{
  /** '' is the core group. */
  group: string;
  version: string;
  /** The plural: `apiexports`. */
  resource: string;
  /**
   * Only for types that a ClusterCachedResource declares. By default, the identity that the logical
   * cluster declares.
   */
  identity?: string | undefined;
  /** A logical cluster's name, or a canonical path of at least two segments. */
  cluster: string;
  /** For a namespaced type. An object needs one; a list without one covers all namespaces. */
  namespace?: string | undefined;
  /** By default, any shard. */
  shard?: string | undefined;
}>;

export type ObjectRef = CollectionRef & Readonly<{ name: string }>;

/** The largest age that a cache accepts. */
const ageMaxMs = 999_999;

export type TypeRef = Pick<CollectionRef, 'group' | 'resource' | 'identity'>;

export type FreshnessRef = TypeRef & Pick<CollectionRef, 'shard'>;

/** The URL path of the object. Throws an Error if a part of it cannot be a name. */
export function objectTarget(ref: ObjectRef): string {
  return `${collectionTarget(ref)}/${segment('name', ref.name)}`;
}

export function collectionTarget({ group, version, resource, identity, cluster, namespace, shard }: CollectionRef): string {
  if (parseClusterName(cluster) === undefined && parseCanonicalPath(cluster) === undefined)
    throw new Error(`${JSON.stringify(cluster)} is neither the name of a logical cluster nor a canonical path`);
  if (shard !== undefined && parseShardName(shard) === undefined) throw new Error(`${JSON.stringify(shard)} is not the name of a shard`);

  const place = `/services/cache/shards/${shard ?? '*'}/clusters/${cluster}`;
  const api = group === '' ? `/api/${segment('version', version)}` : `/apis/${segment('group', group)}/${segment('version', version)}`;
  const inNamespace = namespace === undefined ? '' : `/namespaces/${segment('namespace', namespace)}`;
  const ofIdentity = hasIdentity(identity) ? `:${segment('identity', identity)}` : '';
  return `${place}${api}${inNamespace}/${segment('resource', resource)}${ofIdentity}`;
}

/**
 * The URL path of a look-up, whose report on all shards may be `reportAgeMaxMs` old. Throws as
 * `objectTarget` does.
 */
export function lookUpTarget(ref: ObjectRef, reportAgeMaxMs: number): string {
  objectTarget(ref);
  const { group, version, resource, identity, cluster, namespace, name, shard } = ref;
  const ageMs = Math.min(Math.floor(reportAgeMaxMs), ageMaxMs);
  const query = new URLSearchParams({ version, resource, cluster, name, reportAgeMaxMs: String(ageMs) });
  if (group !== '') query.set('group', group);
  if (hasIdentity(identity)) query.set('identity', identity);
  if (namespace !== undefined) query.set('namespace', namespace);
  if (shard !== undefined) query.set('shard', shard);
  return `/services/cache/look-up?${query.toString()}`;
}

/**
 * The URL path of the type's freshness, on one shard or on all. Without an identity, it covers
 * every type of that name.
 */
export function freshnessTarget({ group, resource, identity, shard }: FreshnessRef): string {
  const query = new URLSearchParams({ resource });
  if (group !== '') query.set('group', group);
  if (hasIdentity(identity)) query.set('identity', identity);
  if (shard !== undefined) query.set('shard', shard);
  return `/services/cache/freshness?${query.toString()}`;
}

/** A built-in type has no identity, which is also written as ''. */
function hasIdentity(identity: string | undefined): identity is string {
  return identity !== undefined && identity !== '';
}

function segment(what: string, text: string): string {
  const [flaw] = text === '' ? ['may not be empty'] : pathSegmentFlaws(text);
  if (flaw !== undefined) throw new Error(`the ${what} ${JSON.stringify(text)} ${flaw}`);
  return encodeURIComponent(text);
}
