/**
 * Where each shard is reached: `spec.baseURL` of its Shard, which is a cached object. A Shard is taken by its name: that of the logical cluster
 * `system:shard`, where newer kcp keeps them, before that of `root`. Any shard may push an object of that name: only the one of the shard where `root` is counts,
 * because whoever says where a shard is gets its requests. While it is not known where `root` is, the newest counts.
 *
 * URLS-1 What was found is known as long as nothing more is published: every request needs it, and looking it up takes longer than the path.
 */
import { parseClusterName, rootCluster, type ClusterName } from '../domain/cluster.js';
import type { Body } from '../domain/object.js';
import type { Objects, Revisions } from '../domain/store-port.js';
import type { ShardName } from '../domain/shard.js';
import { textAt } from '../domain/text-at.js';
import { parsePlace, type Place } from './mapping.js';

const shards = { group: 'core.kcp.io', resource: 'shards', identity: '', shard: '*', namespace: '' } as const;
const clusters: readonly ClusterName[] = ['system:shard', rootCluster].flatMap((text) => parseClusterName(text) ?? []);
const decoder = new TextDecoder();

export class ShardUrls {
  readonly #objects: Pick<Objects, 'find'> & Pick<Revisions, 'published'>;
  readonly #known = new Map<string, Place>();
  /** As of which revision that is. */
  #revision: Revisions['published'] | undefined;

  constructor(objects: Pick<Objects, 'find'> & Pick<Revisions, 'published'>) {
    this.#objects = objects;
  }

  /** Undefined while nothing says where the shard is. `root`: the shard where that is. */
  async of(shard: ShardName, root: ShardName | undefined): Promise<Place | undefined> {
    const { published } = this.#objects;
    if (published !== this.#revision) this.#known.clear();
    this.#revision = published;
    const name = `${root ?? '*'} ${shard}`;
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const found = await this.#find(shard, root);
    if (found !== undefined && this.#objects.published === published) this.#known.set(name, found);
    return found;
  }

  async #find(shard: ShardName, root: ShardName | undefined): Promise<Place | undefined> {
    for (const cluster of clusters) {
      const found = await this.#objects.find({ ...shards, shard: root ?? '*', cluster, name: shard });
      const [newest] = found.toSorted((one, other) => other.revision - one.revision);
      const place = newest && parsePlace(urlIn(newest.body));
      if (place !== undefined) return place;
    }
    return undefined;
  }
}

function urlIn(body: Body): string {
  const parsed: unknown = JSON.parse(decoder.decode(body.bytes));
  return textAt(parsed, 'spec', 'baseURL') ?? '';
}
