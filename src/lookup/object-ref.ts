/**
 * What is looked up, as a controller names it: by type, by logical cluster or canonical path, by name. The form of `cluster` shows which of the two
 * it is, as in kcp's own look-up by path and name.
 *
 * R1 A name never leads to another URL: one that is '', '.' or '..' would read the collection or what is above it.
 */
import { parseCanonicalPath, parseClusterName } from '../domain/cluster.js';
import { pathSegmentFlaws } from '../domain/name-syntax.js';
import { parseShardName } from '../domain/shard.js';

/** The objects of one type in one logical cluster. */
export type CollectionRef = Readonly<{
  /** '' is the core group. */
  group: string;
  version: string;
  /** The plural: `apiexports`. */
  resource: string;
  /** Only for types that a ClusterCachedResource declares; left out, it is that of the cluster's own. */
  identity?: string | undefined;
  /** A logical cluster's name, or a canonical path of at least two segments. */
  cluster: string;
  /** Of a namespaced type; an object needs it, a list does not. */
  namespace?: string | undefined;
  /** Any shard when left out. */
  shard?: string | undefined;
}>;

export type ObjectRef = CollectionRef & Readonly<{ name: string }>;

/** More than a cache accepts is no different. */
const ageMaxMs = 999_999;

export type TypeRef = Pick<CollectionRef, 'group' | 'resource' | 'identity'>;

/** A type on one shard, or on all when none is named. */
export type FreshnessRef = TypeRef & Pick<CollectionRef, 'shard'>;

/** Where the object is read. Throws an Error for what cannot be a name. */
export function objectTarget(ref: ObjectRef): string {
  return `${collectionTarget(ref)}/${segment('name', ref.name)}`;
}

export function collectionTarget({ group, version, resource, identity, cluster, namespace, shard }: CollectionRef): string {
  if (parseClusterName(cluster) === undefined && parseCanonicalPath(cluster) === undefined)
    throw new Error(`${JSON.stringify(cluster)} is neither the name of a logical cluster nor a canonical path`);
  if (shard !== undefined && parseShardName(shard) === undefined) throw new Error(`${JSON.stringify(shard)} is no name of a shard`);

  const place = `/services/cache/shards/${shard ?? '*'}/clusters/${cluster}`;
  const api = group === '' ? `/api/${segment('version', version)}` : `/apis/${segment('group', group)}/${segment('version', version)}`;
  const inNamespace = namespace === undefined ? '' : `/namespaces/${segment('namespace', namespace)}`;
  const ofIdentity = hasIdentity(identity) ? `:${segment('identity', identity)}` : '';
  return `${place}${api}${inNamespace}/${segment('resource', resource)}${ofIdentity}`;
}

/** Where the object is looked up. A report on all shards may be `reportAgeMaxMs` old. Throws as `objectTarget` does. */
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

/** Where the freshness of the type is read, on one shard or on all. Without an identity it is that of every type of the name. */
export function freshnessTarget({ group, resource, identity, shard }: FreshnessRef): string {
  const query = new URLSearchParams({ resource });
  if (group !== '') query.set('group', group);
  if (hasIdentity(identity)) query.set('identity', identity);
  if (shard !== undefined) query.set('shard', shard);
  return `/services/cache/freshness?${query.toString()}`;
}

/** A built-in type has none, which is also spelled ''. */
function hasIdentity(identity: string | undefined): identity is string {
  return identity !== undefined && identity !== '';
}

function segment(what: string, text: string): string {
  const [flaw] = text === '' ? ['may not be empty'] : pathSegmentFlaws(text);
  if (flaw !== undefined) throw new Error(`the ${what} ${JSON.stringify(text)} ${flaw}`);
  return encodeURIComponent(text);
}
