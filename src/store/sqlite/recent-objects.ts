/**
 * Objects that were published or read not long ago, by revision, and the published one of their key. What a revision holds
 * never changes, so nothing here is ever wrong; the oldest leave first, and whoever misses one reads it from the change log.
 *
 * Bound: `bytesMax` of bodies. Informers that start, writers that repeat themselves and watchers a little behind find
 * nearly everything here, without a row being read and copied.
 */
import { formatClientKey, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';

export class RecentObjects {
  readonly #bytesMax: number;
  readonly #objects = new Map<Revision, StoredObject>();
  readonly #current = new Map<string, StoredObject>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(revision: Revision): StoredObject | undefined {
    return this.#objects.get(revision);
  }

  /** The published object of a key, when it was published not long ago. */
  current(key: Key): StoredObject | undefined {
    return this.#current.get(formatKey(key));
  }

  /** The newest object of its key has become visible. */
  publish(object: StoredObject): void {
    this.#current.set(formatKey(object.key), object);
    this.add(object);
  }

  /** A key has become empty. */
  forget(key: Key): void {
    this.#current.delete(formatKey(key));
  }

  add(object: StoredObject): void {
    if (this.#objects.has(object.revision)) return;
    this.#objects.set(object.revision, object);
    this.#bytes += object.body.bytes.length;
    for (const oldest of this.#objects.values()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#leave(oldest);
    }
  }

  #leave(object: StoredObject): void {
    this.#objects.delete(object.revision);
    this.#bytes -= object.body.bytes.length;
    const key = formatKey(object.key);
    if (this.#current.get(key)?.revision === object.revision) this.#current.delete(key);
  }
}

function formatKey(key: Key): string {
  return `${key.shard}|${formatClientKey(key)}`;
}
