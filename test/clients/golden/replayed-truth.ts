/**
 * All changes of one type during a replay. Puts come from the answers to writes. Deletions come
 * from a watch of all objects, because the answer to a DELETE does not have their revision.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient, KubeList, KubeObject } from '../../support/kube-client.js';
import { keyOf, positionOf, seenEvent, type Change } from '../../support/watch-history.js';
import { wildcard } from './recording.js';

const lastPutMsMax = 3_000;
const pollMs = 5;

export class ReplayedTruth {
  readonly #puts = new Map<string, Change>();
  readonly #deletions: Change[] = [];
  readonly #stop = new AbortController();
  readonly #reading: Promise<void>;
  #last = 0n;

  private constructor(client: KubeClient, type: string, list: KubeList) {
    for (const item of list.items) this.put(item);
    this.#reading = this.#read(client, type, list.metadata.resourceVersion ?? '');
  }

  static async begin(client: KubeClient, type: string): Promise<ReplayedTruth> {
    return new ReplayedTruth(client, type, await client.list(wildcard(type)));
  }

  put(object: KubeObject): void {
    const change: Change = { kind: 'put', key: keyOf(object), position: positionOf(object), labels: object.metadata.labels ?? {} };
    this.#puts.set(`${change.key}@${change.position}`, change);
  }

  /** Returns the changes by rising revision, once the watch has seen the last put. */
  async close(): Promise<readonly Change[]> {
    const lastPut = [...this.#puts.values()].reduce((max, { position }) => (position > max ? position : max), 0n);
    for (const deadline = performance.now() + lastPutMsMax; this.#last < lastPut && performance.now() < deadline;) await sleep(pollMs);
    this.#stop.abort();
    await this.#reading;
    return [...this.#puts.values(), ...this.#deletions].toSorted((a, b) => (a.position < b.position ? -1 : 1));
  }

  async #read(client: KubeClient, type: string, resourceVersion: string): Promise<void> {
    for await (const event of client.watch(wildcard(type), { query: { resourceVersion }, signal: this.#stop.signal })) {
      const { key, position, labels } = seenEvent(event);
      if (event.type === 'DELETED') this.#deletions.push({ kind: 'delete', key, position, labels });
      if (position > this.#last) this.#last = position;
    }
  }
}
