/**
 * Writers that create, update and delete over HTTP until the server is gone, and remember what it
 * acknowledged.
 *
 * Each key has one writer, which continues from its last answer. A request that got no answer
 * before the server died may or may not have taken effect. Its writer reads the object again before
 * it continues (`lookAgain`), and the validator allows both outcomes.
 */
import { KubeError, type KubeClient, type KubeObject } from '../kube-client.js';
import { keyOf, positionOf, type Acknowledged, type ObjectKey } from '../watch-history.js';
import type { Random } from './random.js';

type Place = Readonly<{ shard: string; cluster: string; name: string }>;

export const wildcardPath = collectionPath('%2A', '%2A');

export class Writer {
  readonly acknowledged: Acknowledged[] = [];
  readonly #client: KubeClient;
  readonly #random: Random;
  readonly #places: readonly Place[];
  readonly #current = new Map<Place, KubeObject>();
  readonly #tolerated: readonly number[];
  #turn = 0;

  /** `tolerated`: statuses after which the write may or may not have happened. */
  constructor(
    client: KubeClient,
    random: Random,
    { index, places, tolerated = [] }: { index: number; places: number; tolerated?: readonly number[] },
  ) {
    this.#client = client;
    this.#tolerated = tolerated;
    this.#random = random;
    this.#places = Array.from({ length: places }, (_, i) => ({
      shard: i % 2 ? 'amber' : 'birch',
      cluster: `${i % 2 ? 'amber' : 'birch'}-${i % 3}`,
      name: `w${index}-${i}`,
    }));
  }

  /** Continues from the objects that the server shows. */
  lookAgain(objects: readonly KubeObject[]): void {
    const shown = new Map(objects.map((object) => [keyOf(object), object]));
    this.#current.clear();
    for (const place of this.#places) {
      const object = shown.get(keyAt(place));
      if (object !== undefined) this.#current.set(place, object);
    }
  }

  /**
   * Writes until a request fails because the server is gone, or the signal fires. Throws on an
   * answer with any other error.
   */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#write();
      } catch (error) {
        if (error instanceof KubeError && !this.#tolerated.includes(error.status)) throw error;
        return;
      }
    }
  }

  async #write(): Promise<void> {
    const place = this.#places[this.#random.below(this.#places.length)]!;
    const path = collectionPath(place.shard, place.cluster);
    const current = this.#current.get(place);
    const turn = `${place.name}.${this.#turn++}`;
    const key = keyAt(place);
    if (current !== undefined && this.#random.chance(0.25)) {
      await this.#client.delete(`${path}/${place.name}`);
      this.#current.delete(place);
      this.acknowledged.push({ kind: 'delete', key, behind: positionOf(current) });
      return;
    }
    const object = this.#object(place, turn, current);
    const stored = await (current === undefined
      ? this.#client.create(path, object)
      : this.#client.replace(`${path}/${place.name}`, object));
    this.#current.set(place, stored);
    this.acknowledged.push({ kind: 'put', key, position: positionOf(stored), turn });
  }

  #object(place: Place, turn: string, current: KubeObject | undefined): unknown {
    const { resourceVersion } = current?.metadata ?? {};
    const labels = { turn, colour: this.#random.chance(0.5) ? 'red' : 'blue' };
    const spec = { filling: 'x'.repeat(this.#random.below(4000)) };
    return {
      apiVersion: 'apis.kcp.io/v1alpha2',
      kind: 'APIExport',
      metadata: { name: place.name, labels, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
      spec,
    };
  }
}

function keyAt({ shard, cluster, name }: Place): ObjectKey {
  return `${shard}|${cluster}||${name}`;
}

export function collectionPath(shard: string, cluster: string): string {
  return `/services/cache/shards/${shard}/clusters/${cluster}/apis/apis.kcp.io/v1alpha2/apiexports`;
}
