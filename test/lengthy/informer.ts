/**
 * An informer like client-go's, on one HTTP/2 connection. It lists, watches from there, resumes
 * from its last revision when a watch ends, and relists when that revision is gone. It keeps
 * everything it saw for the validators.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { KubeError, type KubeClient, type KubeObject } from '../support/kube-client.js';
import { keyOf, positionOf, seenEvent, seenList, type Position, type SeenEvent, type SeenWatch } from '../support/watch-history.js';

const backoffMs = 50;
const covered = { covers: () => true };

export class Informer {
  /** resourceVersion by key. */
  readonly store = new Map<string, string>();
  readonly watches: SeenWatch[] = [];
  readonly failures: string[] = [];
  lists = 0;
  readonly #client: KubeClient;
  readonly #path: string;
  readonly #stop = new AbortController();
  readonly #changed: (type: string, object: KubeObject) => void;
  #position: Position | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(client: KubeClient, path: string, changed: (type: string, object: KubeObject) => void) {
    this.#client = client;
    this.#path = path;
    this.#changed = changed;
  }

  start(): void {
    this.#running = this.#run();
  }

  get isSynced(): boolean {
    return this.#position !== undefined;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        if (this.#position === undefined) await this.#list();
        await this.#watch();
      } catch (error) {
        if (signal.aborted) return;
        this.failures.push(error instanceof KubeError ? `${error.status} ${error.reason}` : String(error));
        if (error instanceof KubeError && error.status === 410) this.#position = undefined;
        await sleep(backoffMs);
      }
    }
  }

  async #list(): Promise<void> {
    const list = await this.#client.list(this.#path);
    this.lists += 1;
    this.store.clear();
    for (const item of list.items) this.store.set(keyOf(item), item.metadata.resourceVersion ?? '');
    this.#position = seenList('informer', list, covered).position;
  }

  async #watch(): Promise<void> {
    const began = { kind: 'behind', position: this.#position ?? 0n } as const;
    const events: SeenEvent[] = [];
    const id = `watch ${this.watches.length}`;
    this.watches.push({ id, began, events, ...covered });
    const query = { resourceVersion: String(began.position), allowWatchBookmarks: 'true' };
    for await (const event of this.#client.watch(this.#path, { query, signal: this.#stop.signal })) {
      events.push(seenEvent(event));
      if (event.type === 'ERROR') {
        this.failures.push(`ERROR ${String(event.object['code'])}`);
        this.#position = undefined;
        return;
      }
      this.#position = positionOf(event.object);
      if (event.type === 'BOOKMARK') continue;
      if (event.type === 'DELETED') this.store.delete(keyOf(event.object));
      else this.store.set(keyOf(event.object), event.object.metadata.resourceVersion ?? '');
      this.#changed(event.type, event.object);
    }
  }
}
