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

/** The part of a key that kcp's informers use: they know no shard. */
export function formatClientKey(key: Key): string {
  return `${formatResource(key.resource)}|${key.cluster}|${key.namespace}/${key.name}`;
}
