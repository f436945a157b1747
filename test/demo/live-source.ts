/**
 * The objects of one slice that can change. A reader gets all of them as they are when it opens,
 * and each later change.
 *
 * Bounds: one body for each object. For a slow reader it remembers the names that changed, and
 * sends the latest version of each once.
 */
import type { SliceSource, Outgoing } from '../../src/sender/source.js';

export type Put = Outgoing & Readonly<{ kind: 'put' }>;

type Reading = { readonly changed: Set<string>; wake: () => void };

const batchObjects = 64;

export class LiveSource implements SliceSource {
  readonly connected = true;
  readonly #objects = new Map<string, Put>();
  readonly #readings = new Set<Reading>();
  #revision = 0;

  put(received: Put): void {
    const { cluster, namespace, name } = received.object;
    const key = [cluster, namespace, name].join('/');
    this.#objects.set(key, received);
    this.#revision += 1;
    for (const { changed, wake } of this.#readings) {
      changed.add(key);
      wake();
    }
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Outgoing[]> {
    const reading: Reading = { changed: new Set(), wake: () => {} };
    const stop = (): void => reading.wake();
    this.#readings.add(reading);
    signal.addEventListener('abort', stop);
    try {
      const revision = String(this.#revision);
      const objects = [...this.#objects.values()];
      yield [{ kind: 'begin', revision }];
      for (let i = 0; i < objects.length; i += batchObjects) yield objects.slice(i, i + batchObjects);
      yield [{ kind: 'end', revision }];
      while (!signal.aborted) {
        const keys = [...reading.changed].slice(0, batchObjects);
        for (const key of keys) reading.changed.delete(key);
        if (keys.length > 0) yield keys.flatMap((key) => this.#objects.get(key) ?? []);
        else await new Promise<void>((resolve) => (reading.wake = resolve));
      }
    } finally {
      signal.removeEventListener('abort', stop);
      this.#readings.delete(reading);
    }
  }
}
