/**
 * The objects of one slice, in memory; `d` to `f` are in the logical cluster `bold`, others in
 * `acme`. A reader gets a sync of the present objects, then changes.
 */
import type { ClusterName } from '../../../src/domain/cluster.js';
import type { SliceSource, Outgoing } from '../../../src/sender/source.js';
import { keyText } from './fake-cache.js';

type Reading = { queue: Outgoing[]; wake: () => void; failure: Error | undefined; isEnded: boolean };

export class FakeSource implements SliceSource {
  connected = true;
  batchMax = 100;
  /** Whether syncs have no end until `release`. */
  holdsEnd = false;
  /** How many batches readers have received. */
  given = 0;
  opened = 0;
  readonly #objects = new Map<string, string>();
  readonly #readings = new Set<Reading>();

  get readings(): number {
    return this.#readings.size;
  }

  get truth(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#objects].map(([name, body]): [string, string] => [keyText(placed(name)), body]).toSorted());
  }

  put(name: string, body = name, version = 'v1'): void {
    this.#objects.set(name, body);
    this.send({ kind: 'put', version, object: anObject(name, body) });
  }

  delete(name: string): void {
    this.#objects.delete(name);
    this.send({ kind: 'delete', key: placed(name) });
  }

  resync(): void {
    this.send(...this.#sync());
    for (const reading of this.#readings) reading.isEnded = !this.holdsEnd;
  }

  /** Syncs one logical cluster; `missed` is an object of it that disappeared without a delete. */
  resyncCluster(cluster: ClusterName, missed?: string): void {
    if (missed !== undefined && placed(missed).cluster === cluster) this.#objects.delete(missed);
    const puts = this.#puts().filter((put) => put.kind === 'put' && put.object.cluster === cluster);
    this.send({ kind: 'clusterBegin', cluster }, ...puts, { kind: 'clusterEnd', cluster });
  }

  release(): void {
    this.holdsEnd = false;
    for (const reading of this.#readings) {
      if (!reading.isEnded) reading.queue.push({ kind: 'end', revision: '7' });
      reading.isEnded = true;
      reading.wake();
    }
  }

  fail(): void {
    for (const reading of this.#readings) {
      reading.failure = new Error('the source broke');
      reading.wake();
    }
  }

  send(...outgoing: readonly Outgoing[]): void {
    for (const reading of this.#readings) {
      reading.queue.push(...outgoing);
      reading.wake();
    }
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Outgoing[]> {
    const reading: Reading = { queue: [...this.#sync()], wake: () => {}, failure: undefined, isEnded: !this.holdsEnd };
    const abort = (): void => reading.wake();
    signal.addEventListener('abort', abort);
    this.#readings.add(reading);
    this.opened += 1;
    try {
      while (!signal.aborted) {
        if (reading.failure !== undefined) throw reading.failure;
        if (reading.queue.length > 0) {
          this.given += 1;
          yield reading.queue.splice(0, this.batchMax);
        } else await new Promise<void>((resolve) => (reading.wake = resolve));
      }
    } finally {
      this.#readings.delete(reading);
      signal.removeEventListener('abort', abort);
    }
  }

  #sync(): readonly Outgoing[] {
    return [{ kind: 'begin', revision: '7' }, ...this.#puts(), ...(this.holdsEnd ? [] : [{ kind: 'end', revision: '7' } as const])];
  }

  #puts(): readonly Outgoing[] {
    return [...this.#objects].map(([name, body]) => ({ kind: 'put', version: 'v1', object: anObject(name, body) }));
  }
}

function anObject(name: string, body: string) {
  return { ...placed(name), sourceVersion: '7', body: Buffer.from(body) };
}

function placed(name: string): Readonly<{ cluster: string; namespace: string; name: string }> {
  return { cluster: /^[d-f]$/.test(name) ? 'bold' : 'acme', namespace: '', name };
}
