/**
 * Where each shard is reached: `spec.baseURL` of its Shard, which is a cached object. A Shard is taken by its name: that of the logical cluster
 * `system:shard`, where newer kcp keeps them, before that of `root`. Any shard may push an object of that name: only the one of the shard where `root` is counts,
 * because whoever says where a shard is gets its requests. While it is not known where `root` is, the newest counts.
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

/** Scheme, host and port, and the path before that of a request; undefined while nothing says where the shard is. `root`: the shard where that is. */
export async function shardUrl(objects: Pick<Objects, 'find'>, shard: ShardName, root: ShardName | undefined): Promise<URL | undefined> {
  for (const cluster of places) {
    const found = await objects.find({ ...shards, shard: root ?? '*', cluster, name: shard });
    const [newest] = found.toSorted((one, other) => other.revision - one.revision);
    const text = newest === undefined ? '' : urlIn(newest.body);
    if (URL.canParse(text) && text.startsWith('https:')) return new URL(text);
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
