/**
 * Where each shard is reached: `spec.baseURL` of its Shard, which is a cached object. A Shard is taken by its name: that of the logical cluster
 * `system:shard`, where newer kcp keeps them, before that of `root`.
 */
import { parseClusterName, rootCluster, type ClusterName } from '../domain/cluster.js';
import type { Body } from '../domain/object.js';
import type { Objects } from '../domain/store-port.js';
import type { ShardName } from '../domain/shard.js';
import { textAt } from '../domain/text-at.js';

const shards = { group: 'core.kcp.io', resource: 'shards', identity: '', shard: '*', namespace: '' } as const;
const decoder = new TextDecoder();
/** Remembers a pure function: the Shards of an installation stay in memory in the store. */
const urls = new WeakMap<Body, string>();

/** Scheme, host and port, and the path before that of a request; undefined while nothing says where the shard is. */
export async function shardUrl(objects: Pick<Objects, 'find'>, shard: ShardName): Promise<URL | undefined> {
  for (const cluster of places) {
    const [found] = await objects.find({ ...shards, cluster, name: shard });
    const text = found === undefined ? '' : urlIn(found.body);
    if (URL.canParse(text)) return new URL(text);
  }
  return undefined;
}

const places: readonly ClusterName[] = ['system:shard', rootCluster].flatMap((text) => parseClusterName(text) ?? []);

function urlIn(body: Body): string {
  const known = urls.get(body);
  if (known !== undefined) return known;
  const parsed: unknown = JSON.parse(decoder.decode(body.bytes));
  const url = textAt(parsed, 'spec', 'baseURL') ?? '';
  urls.set(body, url);
  return url;
}
