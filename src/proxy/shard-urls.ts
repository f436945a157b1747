/**
 * The URL of each shard: `spec.baseURL` of its Shard, which is a cached object. The Shard of that
 * name is read from the logical cluster `system:shard`, where newer kcp keeps Shards, else from
 * `root`.
 *
 * Any shard may push a Shard of any name. Only the Shards from the shard `root` count, because
 * their URLs receive the requests for shards.
 *
 * URLS-1 A result is cached until the next published revision. Every request needs it, and reading
 *    it takes longer than resolving the path.
 */
import { parseClusterName, rootCluster, type ClusterName } from '../domain/cluster.js';
import type { Body } from '../domain/object.js';
import type { Objects, Revisions } from '../domain/store-port.js';
import { rootShard, type ShardName } from '../domain/shard.js';
import { textAt } from '../domain/base/members.js';
import { parseBackendUrl, type BackendUrl } from './mapping.js';

const shards = { group: 'core.kcp.io', resource: 'shards', identity: '', shard: rootShard, namespace: '' } as const;
const clusters: readonly ClusterName[] = ['system:shard', rootCluster].flatMap((text) => parseClusterName(text) ?? []);
const decoder = new TextDecoder();

export type ShardUrlsParts = Readonly<{ objects: Pick<Objects, 'find'>; revisions: Pick<Revisions, 'published'> }>;

export class ShardUrls {
  readonly #parts: ShardUrlsParts;
  readonly #known = new Map<ShardName, BackendUrl>();
  /** The published revision at which `#known` was read. */
  #revision: Revisions['published'] | undefined;

  constructor(parts: ShardUrlsParts) {
    this.#parts = parts;
  }

  /** Undefined while no Shard object says where the shard is. */
  async of(shard: ShardName): Promise<BackendUrl | undefined> {
    const { published } = this.#parts.revisions;
    if (published !== this.#revision) this.#known.clear();
    this.#revision = published;
    const known = this.#known.get(shard);
    if (known !== undefined) return known;
    const found = await this.#find(shard);
    if (found !== undefined && this.#parts.revisions.published === published) this.#known.set(shard, found);
    return found;
  }

  async #find(shard: ShardName): Promise<BackendUrl | undefined> {
    for (const cluster of clusters) {
      const [found] = await this.#parts.objects.find({ ...shards, cluster, name: shard });
      const place = found && parseBackendUrl(urlIn(found.body));
      if (place !== undefined) return place;
    }
    return undefined;
  }
}

function urlIn(body: Body): string {
  const parsed: unknown = JSON.parse(decoder.decode(body.bytes));
  return textAt(parsed, 'spec', 'baseURL') ?? '';
}
