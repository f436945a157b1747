/**
 * An informer of the fault tests. It watches one type at one cache, resumes after its last event
 * when its connection breaks, and records what it receives. On a 410 it begins with the present, as
 * an informer does that relists.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { KubeError, type KubeClient, type WatchEvent } from '../../support/kube-client.js';
import { modelTypes } from '../crash/model-shard.js';
import type { TreeCache } from '../../support/crash/process-tree.js';

export type Seen = Readonly<{ type: WatchEvent['type']; name: string; turn: string }>;

const path = `/services/cache/shards/*/clusters/*/apis/${modelTypes[0].group}/${modelTypes[0].version}/${modelTypes[0].resource}`;
const againMs = 50;

/** An onlooker that closes with the test. */
export async function anOnlooker(t: ExecutionContext, cache: TreeCache): Promise<Onlooker> {
  const onlooker = await Onlooker.at(cache);
  t.teardown(() => onlooker.close());
  return onlooker;
}

class Onlooker {
  readonly #client: KubeClient;
  readonly #stop = new AbortController();
  readonly #seen: Seen[] = [];
  readonly #watching: Promise<void>;
  #position: string;
  /** How often it got 410. */
  relists = 0;

  private constructor(client: KubeClient, position: string) {
    this.#client = client;
    this.#position = position;
    this.#watching = this.#watch();
  }

  /** The onlooker sees all changes from now on. */
  static async at({ process }: TreeCache): Promise<Onlooker> {
    const client = process.client();
    const { metadata } = await client.list(path);
    return new Onlooker(client, metadata.resourceVersion ?? '');
  }

  get seen(): readonly Seen[] {
    return this.#seen;
  }

  /** The events of one object in order, each with its turn: `MODIFIED 3`. */
  of(name: string): readonly string[] {
    return this.#seen.filter((each) => each.name === name).map(({ type, turn }) => `${type} ${turn}`);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        const query = { resourceVersion: this.#position, allowWatchBookmarks: 'true' };
        for await (const { type, object } of this.#client.watch(path, { query, signal })) {
          if (type === 'ERROR') {
            if (object['code'] === 410) await this.#relist();
            break;
          }
          this.#position = object.metadata.resourceVersion ?? this.#position;
          const { name = '', labels } = object.metadata;
          if (type !== 'BOOKMARK') this.#seen.push({ type, name, turn: labels?.['turn'] ?? '' });
        }
      } catch (error) {
        if (error instanceof KubeError && error.status === 410) await this.#relist().catch(() => {});
      }
      if (!signal.aborted) await sleep(againMs);
    }
  }

  async #relist(): Promise<void> {
    this.relists += 1;
    const { metadata } = await this.#client.list(path);
    this.#position = metadata.resourceVersion ?? '';
  }
}
