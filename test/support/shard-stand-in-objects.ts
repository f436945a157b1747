/**
 * The objects of a recorded shard as that shard itself serves them, without what kcp's replication
 * controller adds.
 */
import { recordedObjects } from '../demo/recorded-shards.js';
import type { KubeObject } from './kube-client.js';
import type { ShardStandIn } from './shard-stand-in.js';

export type ShardObject = Readonly<{ resource: string; cluster: string; object: KubeObject }>;

/**
 * All objects of `shard` in the recording test/clients/golden/kcp-2-shards.jsonl, built-in types
 * only.
 */
export async function shardObjects(shard: string): Promise<readonly ShardObject[]> {
  const recorded = await recordedObjects('kcp-2-shards.jsonl');
  return recorded
    .filter((each) => each.shard === shard)
    .map(({ collection, object }) => {
      const [, cluster = '', group = '', resource = ''] = /\/clusters\/([^/]+)\/apis\/([^/]+)\/[^/]+\/([^/]+)$/.exec(collection) ?? [];
      return { resource: `${resource}.${group}`, cluster, object: asOnShard(object) };
    });
}

/** Puts all of them into a stand-in; resolves with their number. */
export async function fill(standIn: ShardStandIn, shard: string): Promise<number> {
  const objects = await shardObjects(shard);
  for (const { resource, cluster, object } of objects) standIn.store.put(resource, cluster, object);
  return objects.length;
}

/**
 * The object on its shard: with the uid and the version of the original, without the annotations of
 * a replica.
 */
export function asOnShard(replica: KubeObject): KubeObject {
  const {
    'cache.kcp.io/original-resource-UID': uid,
    'cache.kcp.io/original-resource-version': resourceVersion,
    'kcp.io/shard': _,
    ...annotations
  } = replica.metadata.annotations ?? {};
  return {
    ...replica,
    metadata: {
      ...replica.metadata,
      annotations,
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
  };
}
