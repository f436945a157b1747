import { Buffer } from 'node:buffer';
import type { ClusterName } from './cluster.js';
import type { Resource } from './resource.js';
import { formatResource } from './resource.js';
import type { ShardName } from './shard.js';

/** The identity of a stored object. `namespace` is '' for a cluster-scoped object. */
export type Key = Readonly<{
  resource: Resource;
  shard: ShardName;
  cluster: ClusterName;
  namespace: string;
  name: string;
}>;

/** The part of a key that kcp's informers use; they do not know the shard. */
export function formatClientKey(key: Key): string {
  return `${formatResource(key.resource)}|${formatObjectName(key)}`;
}

export function formatKey(key: Key): string {
  return `${key.shard}|${formatClientKey(key)}`;
}

/** Names an object among those of one slice. */
export function formatObjectName({ cluster, namespace, name }: Readonly<{ cluster: string; namespace: string; name: string }>): string {
  return `${cluster}|${namespace}/${name}`;
}

/** Names a logical cluster on a shard. */
export function clusterKeyOf({ shard, cluster }: Pick<Key, 'shard' | 'cluster'>): string {
  return `${shard}|${cluster}`;
}

/**
 * A copy of the key that is kept for long. To save memory, it shares the parts that are equal in
 * `other`, and copies the rest, so that no part keeps a longer text alive.
 */
export function compactKey({ resource, shard, cluster, namespace, name }: Key, other: Key | undefined): Key {
  const isOfSameType = other !== undefined && formatResource(resource) === formatResource(other.resource);
  return {
    resource: isOfSameType ? other.resource : copiedResource(resource),
    shard: shard === other?.shard ? other.shard : copied(shard),
    cluster: cluster === other?.cluster ? other.cluster : copied(cluster),
    namespace: namespace === other?.namespace ? other.namespace : copied(namespace),
    name: copied(name),
  };
}

function copiedResource({ group, resource, identity }: Resource): Resource {
  return { group: copied(group), resource: copied(resource), identity: copied(identity) };
}

/** V8 represents a substring as a view that keeps the whole text in memory. */
function copied<Text extends string>(text: Text): Text {
  return Buffer.from(text).toString() as Text;
}
