/**
 * Which objects of slices were refused at the other end, or here, and have been taken by nobody since: what is held of such a slice is not all
 * there is, so that the absence of an object says nothing.
 *
 * Bound: `keysMax` objects. Beyond them, and for keys of more than `keyCharactersMax`, a slice lacks something until it begins anew.
 */
import type { PushedKey } from '../frames/frame.js';
import { formatSlice, type Slice } from '../domain/slice.js';

const keysMax = 1_000;
const keyCharactersMax = 1_024;
/** Stands for those that are not remembered: no key is like it. */
const others = '';

export class LackingObjects {
  readonly #keys = new Map<string, Set<string>>();
  #count = 0;

  lacks(slice: Slice): boolean {
    return this.#keys.has(formatSlice(slice));
  }

  /** An object was refused. */
  add(slice: Slice, key: PushedKey): void {
    const name = formatSlice(slice);
    const keys = this.#keys.get(name) ?? new Set<string>();
    this.#keys.set(name, keys);
    const text = textOf(key);
    const before = keys.size;
    keys.add(this.#count >= keysMax || text.length > keyCharactersMax ? others : text);
    this.#count += keys.size - before;
  }

  /** An object was taken, or is gone. True: by that nothing is lacking of the slice any more. */
  remove(slice: Slice, key: PushedKey): boolean {
    const name = formatSlice(slice);
    const keys = this.#keys.get(name);
    if (keys?.delete(textOf(key)) !== true) return false;
    this.#count -= 1;
    if (keys.size > 0) return false;
    this.#keys.delete(name);
    return true;
  }

  /** The slice begins anew. */
  clear(slice: Slice): void {
    const name = formatSlice(slice);
    this.#count -= this.#keys.get(name)?.size ?? 0;
    this.#keys.delete(name);
  }
}

function textOf({ cluster, namespace, name }: PushedKey): string {
  return `${cluster}|${namespace}/${name}`;
}
