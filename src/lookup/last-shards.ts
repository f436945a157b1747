/**
 * On which shard the objects of a logical cluster, or of what a canonical path leads to, were found last. A guess: it saves asking about all shards
 * of a type that is on more of them than a cache lists. Bound: `placesMax`; the one that was learned longest ago is forgotten.
 */
import type { CollectionRef } from './object-ref.js';

const placesMax = 10_000;

type Place = Pick<CollectionRef, 'group' | 'resource' | 'identity' | 'cluster'>;

export class LastShards {
  readonly #shards = new Map<string, string>();

  of(place: Place): string | undefined {
    return this.#shards.size === 0 ? undefined : this.#shards.get(nameOf(place));
  }

  learn(place: Place, shard: string): void {
    const name = nameOf(place);
    this.#shards.delete(name);
    const [oldest] = this.#shards.keys();
    if (oldest !== undefined && this.#shards.size >= placesMax) this.#shards.delete(oldest);
    this.#shards.set(name, shard);
  }
}

function nameOf({ group, resource, identity = '', cluster }: Place): string {
  return [group, resource, identity, cluster].join(' ');
}
