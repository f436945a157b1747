/**
 * Objects that were recently published or read, by revision, and the published one of their key. What a revision holds
 * never changes, so nothing here is ever wrong. The oldest leave first, and a reader who misses one reads it from the change log.
 *
 * Bound: `bytesMax` of the buffers that bodies lie in, and of what each object takes beside its body; several may share one buffer, and one alone keeps it. Informers that start, writers that repeat
 * themselves and watchers a little behind find nearly everything here, without a row being read and copied.
 */
import { formatClientKey, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';

/** What an object takes in memory beside its body: measured with path entries, of which 20,000 take 10 MiB. */
const objectBytes = 512;

export class RecentObjects {
  readonly #bytesMax: number;
  /** In the order in which they leave. */
  readonly #objects = new Map<Revision, StoredObject>();
  /** By the text of their key: published ones. */
  readonly #current = new Map<string, StoredObject>();
  /** The text of an object's key in `#current`. */
  readonly #places = new Map<Revision, string>();
  /** Continues where it was: from the front, it would step over all that has left already. */
  #oldest: Iterator<StoredObject>;
  /** How many of the objects lie in each buffer. */
  readonly #buffers = new Map<ArrayBufferLike, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#oldest = this.#objects.values();
  }

  get(revision: Revision): StoredObject | undefined {
    return this.#objects.get(revision);
  }

  /** The published object of a key, if it was published recently. */
  current(key: Key): StoredObject | undefined {
    return this.#current.get(formatKey(key));
  }

  /** The newest object of its key has become visible. */
  publish(object: StoredObject): void {
    const place = formatKey(object.key);
    const before = this.#current.get(place);
    if (before !== undefined) this.#places.delete(before.revision);
    this.#current.set(place, object);
    this.#places.set(object.revision, place);
    this.add(object);
  }

  /** A key has become empty. */
  forget(key: Key): void {
    const place = formatKey(key);
    const before = this.#current.get(place);
    if (before === undefined) return;
    this.#current.delete(place);
    this.#places.delete(before.revision);
  }

  add(object: StoredObject): void {
    if (this.#objects.has(object.revision)) return;
    this.#objects.set(object.revision, object);
    this.#bytes += objectBytes;
    this.#hold(object.body.bytes.buffer);
    while (this.#bytes > this.#bytesMax) this.#leave();
  }

  /** One of many that are read together: it displaces nothing, because most of them would have left before anybody wanted them again. */
  addIfRoom(object: StoredObject): void {
    if (this.#bytes + objectBytes + object.body.bytes.buffer.byteLength <= this.#bytesMax) this.add(object);
  }

  #leave(): void {
    let { value: object, done } = this.#oldest.next();
    if (done === true) {
      this.#oldest = this.#objects.values();
      ({ value: object, done } = this.#oldest.next());
    }
    if (object === undefined) return;
    this.#objects.delete(object.revision);
    this.#bytes -= objectBytes;
    this.#release(object.body.bytes.buffer);
    const place = this.#places.get(object.revision);
    if (place === undefined) return;
    this.#places.delete(object.revision);
    this.#current.delete(place);
  }

  #hold(buffer: ArrayBufferLike): void {
    const held = this.#buffers.get(buffer) ?? 0;
    if (held === 0) this.#bytes += buffer.byteLength;
    this.#buffers.set(buffer, held + 1);
  }

  #release(buffer: ArrayBufferLike): void {
    const held = this.#buffers.get(buffer) ?? 0;
    if (held > 1) {
      this.#buffers.set(buffer, held - 1);
      return;
    }
    this.#buffers.delete(buffer);
    this.#bytes -= buffer.byteLength;
  }
}

function formatKey(key: Key): string {
  return `${key.shard}|${formatClientKey(key)}`;
}
