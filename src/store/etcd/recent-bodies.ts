/**
 * Objects whose bodies are in memory: those that changed or were read most recently. Whoever misses one asks etcd. Bound: `bytesMax` of bodies.
 */
import type { Key } from '../../domain/key.js';
import { formatClientKey } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';

/** What an object takes beside its body. */
const objectBytes = 768;
/** Of the bound, once it was exceeded. */
const keptShare = 63 / 64;

export class RecentBodies {
  readonly #bytesMax: number;
  /** In the order in which they leave. */
  readonly #objects = new Map<string, StoredObject>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a body of that length would make no other leave. */
  hasRoomFor(length: number): boolean {
    return this.#bytes + length + objectBytes <= this.#bytesMax;
  }

  /** What the key held at that revision, if it is here. */
  get(key: Key, revision: Revision): StoredObject | undefined {
    const found = this.#objects.get(textOf(key));
    return found?.revision === revision ? found : undefined;
  }

  /** Unless a newer one of the key is here. */
  add(object: StoredObject): void {
    const text = textOf(object.key);
    const known = this.#objects.get(text);
    if (known !== undefined && known.revision > object.revision) return;
    this.#drop(text, known);
    this.#objects.set(text, object);
    this.#bytes += sizeOf(object);
    if (this.#bytes > this.#bytesMax) this.#dropOldest();
  }

  forget(key: Key): void {
    const text = textOf(key);
    this.#drop(text, this.#objects.get(text));
  }

  /** Some at once: a walk from the front of a map passes the places of all that have left it. An iterator that stayed would hold all that it has passed. */
  #dropOldest(): void {
    for (const [oldest, each] of this.#objects) {
      if (this.#bytes <= keptShare * this.#bytesMax) return;
      this.#drop(oldest, each);
    }
  }

  #drop(text: string, object: StoredObject | undefined): void {
    if (object === undefined) return;
    this.#objects.delete(text);
    this.#bytes -= sizeOf(object);
  }
}

function sizeOf({ body }: StoredObject): number {
  return body.bytes.length + objectBytes;
}

function textOf(key: Key): string {
  // Joined, a text is whole; added up, V8 keeps it as a tree of its parts.
  return [key.shard, formatClientKey(key)].join('|');
}
