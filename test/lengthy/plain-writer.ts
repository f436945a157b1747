/**
 * Writes to a cache as an unmodified kcp does: creates, updates and deletes over plain HTTP without
 * a pause, and retries every request that failed. After `settle` it leaves its objects unchanged
 * and goes on with new ones.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { aPath, anApiExport } from '../support/objects.js';
import type { KubeObject } from '../support/kube-client.js';
import type { Random } from '../support/crash/random.js';
import type { TreeCache } from '../support/crash/process-tree.js';

const retryMs = 50;
const restMs = 5;
/**
 * An object is updated, and later deleted, once this many newer ones were created. No name is
 * reused, so a delete that some cache missed stays visible.
 */
const updatedAfter = 20;
const deletedAfter = 60;

/** Runs until the test ends. */
export function aPlainWriter(t: ExecutionContext, cache: TreeCache, random: Random): PlainWriter {
  const writer = new PlainWriter(cache, random);
  const running = writer.run();
  t.teardown(async () => {
    writer.stop();
    await running;
  });
  return writer;
}

export class PlainWriter {
  readonly #cache: TreeCache;
  readonly #random: Random;
  readonly #wanted = new Map<string, number>();
  /** Names of objects that the cache may not yet hold as wanted. */
  readonly #due = new Set<string>();
  #settled = 0;
  #turn = 0;
  #deletes = 0;
  #isStopped = false;

  constructor(cache: TreeCache, random: Random) {
    this.#cache = cache;
    this.#random = random;
  }

  /** How many objects the writer has deleted. */
  get deletes(): number {
    return this.#deletes;
  }

  /**
   * No longer changes the objects created until now, but still retries until the cache holds them
   * as wanted.
   */
  settle(): void {
    this.#settled = this.#turn;
  }

  stop(): void {
    this.#isStopped = true;
  }

  async run(): Promise<void> {
    while (!this.#isStopped) {
      this.#change();
      for (const name of this.#due) if (await this.#write(name)) this.#due.delete(name);
      await sleep(this.#due.size === 0 ? restMs : retryMs);
    }
  }

  /** Where the cache differs from the settled objects. */
  async differences(cache: TreeCache): Promise<readonly string[]> {
    const { items } = await cache.client.list(aPath({ cluster: 'acme' }));
    const held = new Map(items.map(({ metadata: { name = '', labels } }) => [name, Number(labels?.['turn'])]));
    return Array.from({ length: this.#settled }, (_, i) => `n${i + 1}`)
      .filter((name) => held.get(name) !== this.#wanted.get(name))
      .map((name) => `${cache.name}: ${name} is ${held.get(name) ?? 'gone'}, ${this.#wanted.get(name) ?? 'gone'} is right`);
  }

  #change(): void {
    this.#turn += 1;
    this.#want(this.#turn, this.#turn);
    if (this.#random.chance(0.5)) this.#want(this.#turn - updatedAfter, this.#turn);
    this.#want(this.#turn - deletedAfter, undefined);
  }

  #want(index: number, turn: number | undefined): void {
    if (index <= this.#settled) return;
    if (turn === undefined) this.#wanted.delete(`n${index}`);
    else this.#wanted.set(`n${index}`, turn);
    this.#due.add(`n${index}`);
  }

  /** False if the write failed and must be retried. */
  async #write(name: string): Promise<boolean> {
    const { client } = this.#cache;
    const turn = this.#wanted.get(name);
    try {
      if (turn === undefined) {
        const { status } = await client.raw('DELETE', aPath({ name }));
        if (status === 200) this.#deletes += 1;
        return status === 200 || status === 404;
      }
      const held = await client.raw('GET', aPath({ name }));
      if (held.status !== 200 && held.status !== 404) return false;
      if (held.status === 404) return (await client.raw('POST', aPath(), { body: this.#object(name, turn) })).status === 201;
      const { metadata } = JSON.parse(held.text) as KubeObject;
      const body = this.#object(name, turn, metadata.resourceVersion);
      return (await client.raw('PUT', aPath({ name }), { body })).status === 200;
    } catch {
      return false;
    }
  }

  #object(name: string, turn: number, resourceVersion?: string): unknown {
    return anApiExport({ name, labels: { turn: `${turn}` }, resourceVersion });
  }
}
