/**
 * One informer's watch over hours. When its connection ends it resumes from its last revision, and
 * its events form one history. So a gap or a repeat at a reconnection is found like any other.
 * Validated events are dropped, so memory does not grow with time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { KubeError, type KubeClient } from '../kube-client.js';
import { seenEvent, type Covered, type Position, type SeenEvent, type SeenWatch } from '../watch-history.js';

const againMs = 20;
const revisionMax = 2n ** 63n;

export type LongWatchOptions = Readonly<{
  id: string;
  path: string;
  query?: Readonly<Record<string, string>>;
  position: Position;
  covered: Covered;
}>;

export class LongWatch {
  readonly #client: KubeClient;
  readonly #options: LongWatchOptions;
  #began: Position;
  #position: Position;
  #events: SeenEvent[] = [];
  #hasRead = false;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** Why the watch ended for good: the server no longer knew its revision, or refused it. */
  failure: string | undefined;

  /** Reads nothing until `come`. */
  constructor(client: KubeClient, options: LongWatchOptions) {
    this.#client = client;
    this.#options = options;
    this.#began = options.position;
    this.#position = options.position;
  }

  get position(): Position {
    return this.#position;
  }

  get events(): readonly SeenEvent[] {
    return this.#events;
  }

  /** Whether the watch has read anything since the last `come`. */
  get hasRead(): boolean {
    return this.#hasRead;
  }

  come(): void {
    if (this.failure !== undefined) return;
    this.#hasRead = false;
    this.#stop = new AbortController();
    this.#running = this.#follow(this.#stop.signal);
  }

  async leave(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Removes the events up to a revision from memory and returns them. */
  take(upTo: Position): SeenWatch {
    const index = this.#events.findIndex(({ position }) => position > upTo);
    const events = this.#events.splice(0, index < 0 ? this.#events.length : index);
    const { id, covered } = this.#options;
    const taken: SeenWatch = { id, began: { kind: 'behind', position: this.#began }, events, ...covered };
    this.#began = upTo > this.#began ? upTo : this.#began;
    return taken;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { path, query } = this.#options;
    while (!signal.aborted) {
      const from = { ...query, resourceVersion: String(this.#position), allowWatchBookmarks: 'true' };
      try {
        for await (const event of this.#client.watch(path, { query: from, signal })) {
          const seen = seenEvent(event);
          this.#hasRead = true;
          if (seen.type === 'ERROR') {
            this.#fail(seen.code);
            break;
          }
          this.#events.push(seen);
          this.#position = seen.position;
        }
      } catch (error) {
        // A server that starts or stops may answer with 5xx; the watch retries.
        if (error instanceof KubeError && error.status < 500) this.#fail(error.status);
      }
      if (!signal.aborted) await sleep(againMs);
    }
  }

  /** A failed watch no longer delays validation. */
  #fail(code: number | undefined): void {
    this.failure = `${this.#options.id} ended with ${code} at ${this.#position}`;
    this.#position = revisionMax;
    this.#stop.abort();
  }
}
