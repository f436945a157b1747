/**
 * Keeps the bodies that changed or were read from etcd most recently.
 *
 * Bound: `bytesMax`.
 */
import type { Key } from '../../domain/key.js';
import { formatClientKey } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';

/** The memory of an object without its body. */
const objectBytes = 768;
/** When the bound is exceeded, objects are dropped until this share of the bound is in use. */
const keptShare = 63 / 64;

export class RecentBodies {
  readonly #bytesMax: number;
  /** The first object is dropped first. */
  readonly #objects = new Map<string, StoredObject>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a body of that length fits without dropping another. */
  fits(length: number): boolean {
    return this.#bytes + length + objectBytes <= this.#bytesMax;
  }

  get(key: Key, revision: Revision): StoredObject | undefined {
    const found = this.#objects.get(textOf(key));
    return found?.revision === revision ? found : undefined;
  }

  /** Adds the object, unless a newer one of its key is in memory. */
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

  /**
   * Drops several objects at once, because an iteration over a Map first passes the slots of all
   * deleted entries. An iterator that stays open would keep all entries that it has passed.
   */
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
  // `join` makes a flat string; with `+`, V8 would keep a tree of the parts.
  return [key.shard, formatClientKey(key)].join('|');
}
