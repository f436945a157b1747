/**
 * Objects that one end of a connection refused and has not accepted since, by slice. A slice with
 * such objects is incomplete, so the absence of an object from the slice proves nothing.
 *
 * Bound: `keysMax` objects. An object beyond them, or with a key of more than `keyCharactersMax`,
 * marks its slice as lacking until the slice is synced again.
 */
import { formatObjectName } from '../key.js';
import { formatSlice, type Slice } from '../slice.js';

/** An object of the slice. Its parts are not validated, because they are kept as they were sent. */
type ObjectName = Readonly<{ cluster: string; namespace: string; name: string }>;

const keysMax = 1_000;
const keyCharactersMax = 1_024;
/** Represents the objects that are not remembered; no key has this text. */
const others = '';

export class LackingObjects {
  /** By slice and key: the order of the last refusal. */
  readonly #keys = new Map<string, Map<string, number>>();
  #count = 0;

  lacks(slice: Slice): boolean {
    return this.#keys.size > 0 && this.#keys.has(formatSlice(slice));
  }

  /**
   * Records that an object was refused. `order` rises with each version that is sent, because a
   * sender may learn of a refusal after it has sent a later version.
   */
  add(slice: Slice, key: ObjectName, order = 0): void {
    const name = formatSlice(slice);
    const keys = this.#keys.get(name) ?? new Map<string, number>();
    this.#keys.set(name, keys);
    const text = formatObjectName(key);
    const before = keys.size;
    const remembered = keys.has(text) || (this.#count < keysMax && text.length <= keyCharactersMax) ? text : others;
    keys.set(remembered, Math.max(order, keys.get(remembered) ?? 0));
    this.#count += keys.size - before;
  }

  /** Records that a version later than the refused one was accepted, or that the object is gone. */
  remove(slice: Slice, key: ObjectName, order = Infinity): void {
    if (this.#count === 0) return;
    const [name, text] = [formatSlice(slice), formatObjectName(key)];
    const refused = this.#keys.get(name)?.get(text);
    if (refused !== undefined && refused < order) this.#forget(name, text);
  }

  /**
   * Records that a sync of one logical cluster of the slice begins. The mark for objects that are
   * not remembered stays, because they may be in another logical cluster.
   */
  clearCluster(slice: Slice, cluster: string): void {
    const name = formatSlice(slice);
    for (const text of this.#keys.get(name)?.keys() ?? []) if (text.startsWith(`${cluster}|`)) this.#forget(name, text);
  }

  /** Records that a sync of the slice begins. */
  clear(slice: Slice): void {
    const name = formatSlice(slice);
    this.#count -= this.#keys.get(name)?.size ?? 0;
    this.#keys.delete(name);
  }

  #forget(name: string, text: string): void {
    const keys = this.#keys.get(name);
    if (keys?.delete(text) !== true) return;
    this.#count -= 1;
    if (keys.size === 0) this.#keys.delete(name);
  }
}
