/**
 * Objects that were recently published or read, by revision, and the published object of each key.
 * The content of a revision never changes, so no entry can be wrong. The oldest entries are dropped
 * first. A reader that finds no entry reads the change log.
 *
 * Starting informers, writers that repeat themselves and watchers a little behind find nearly
 * everything here. For them, the store reads and copies no row.
 *
 * Bound: `bytesMax` of the buffers that contain bodies, plus `objectBytes` for each object. Several
 * bodies may share a buffer, and any one of them keeps all of it in memory.
 */
import { formatKey, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';

/** The memory of an object without its body, measured with path entries: 20,000 take 10 MiB. */
const objectBytes = 512;

export class RecentObjects {
  readonly #bytesMax: number;
  /** In the order in which they are dropped. */
  readonly #objects = new Map<Revision, StoredObject>();
  /** Published objects, keyed by the text of the key. */
  readonly #current = new Map<string, StoredObject>();
  /**
   * One iterator for all calls, because a new one would first pass the slots of all dropped
   * entries.
   */
  #oldest: Iterator<StoredObject>;
  /** How many of the objects each buffer contains. */
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

  publish(object: StoredObject): void {
    this.#current.set(formatKey(object.key), object);
    this.add(object);
  }

  /** The key now has no object. */
  forget(key: Key): void {
    this.#current.delete(formatKey(key));
  }

  add(object: StoredObject): void {
    if (this.#objects.has(object.revision)) return;
    this.#objects.set(object.revision, object);
    this.#bytes += objectBytes;
    this.#hold(object.body.bytes.buffer);
    while (this.#bytes > this.#bytesMax) this.#leave();
  }

  /**
   * Adds one of many objects that are read together. Displaces no other object, because most of the
   * many would be dropped before anybody reads them again.
   */
  addIfFits(object: StoredObject): void {
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
    const place = formatKey(object.key);
    if (this.#current.get(place)?.revision === object.revision) this.#current.delete(place);
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
