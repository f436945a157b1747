/**
 * Which objects of slices were refused at the other end, or here, and not accepted since. Such a slice is not held in full, so the absence
 * of an object proves nothing.
 *
 * Bound: `keysMax` objects. Beyond them, and for keys of more than `keyCharactersMax`, a slice lacks something until it is synced again.
 */
import { formatSlice, type Slice } from './slice.js';

/** Of one slice; as it was sent, so not parsed. */
type ObjectName = Readonly<{ cluster: string; namespace: string; name: string }>;

const keysMax = 1_000;
const keyCharactersMax = 1_024;
/** Stands for those that are not remembered: no key has this text. */
const others = '';

export class LackingObjects {
  /** By slice and key: the order of the last refusal. */
  readonly #keys = new Map<string, Map<string, number>>();
  #count = 0;

  lacks(slice: Slice): boolean {
    return this.#keys.size > 0 && this.#keys.has(formatSlice(slice));
  }

  /** An object was refused. `order`: rises with what is sent, for a sender that learns of a refusal after it sent a later version. */
  add(slice: Slice, key: ObjectName, order = 0): void {
    const name = formatSlice(slice);
    const keys = this.#keys.get(name) ?? new Map<string, number>();
    this.#keys.set(name, keys);
    const text = textOf(key);
    const before = keys.size;
    const remembered = keys.has(text) || (this.#count < keysMax && text.length <= keyCharactersMax) ? text : others;
    keys.set(remembered, Math.max(order, keys.get(remembered) ?? 0));
    this.#count += keys.size - before;
  }

  /** A version of the object that came after the refused one was accepted, or the object is gone. */
  remove(slice: Slice, key: ObjectName, order = Infinity): void {
    if (this.#count === 0) return;
    const [name, text] = [formatSlice(slice), textOf(key)];
    const refused = this.#keys.get(name)?.get(text);
    if (refused !== undefined && refused < order) this.#forget(name, text);
  }

  /** A logical cluster of the slice is being synced again. What is not remembered may have been of another. */
  clearCluster(slice: Slice, cluster: string): void {
    const name = formatSlice(slice);
    for (const text of this.#keys.get(name)?.keys() ?? []) if (text.startsWith(`${cluster}|`)) this.#forget(name, text);
  }

  /** The slice is being synced again. */
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

function textOf({ cluster, namespace, name }: ObjectName): string {
  return `${cluster}|${namespace}/${name}`;
}
