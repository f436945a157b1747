/**
 * Which objects of slices were refused at the other end, or here, and have been taken by nobody since: what is held of such a slice is not all
 * there is, so that the absence of an object says nothing.
 *
 * Bound: `keysMax` objects. Beyond them, and for keys of more than `keyCharactersMax`, a slice lacks something until it begins anew.
 */
import { formatSlice, type Slice } from './slice.js';

/** Of one slice; as it was sent, so not parsed. */
type ObjectName = Readonly<{ cluster: string; namespace: string; name: string }>;

const keysMax = 1_000;
const keyCharactersMax = 1_024;
/** Stands for those that are not remembered: no key is like it. */
const others = '';

export class LackingObjects {
  /** By slice and key: the order of what was refused last. */
  readonly #keys = new Map<string, Map<string, number>>();
  #count = 0;

  lacks(slice: Slice): boolean {
    return this.#keys.has(formatSlice(slice));
  }

  /** An object was refused. `order`: rises with what is told, where who hears of refusals hears later of what was taken before. */
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

  /** An object was taken, or is gone, behind what was refused of it. */
  remove(slice: Slice, key: ObjectName, order = Infinity): void {
    const name = formatSlice(slice);
    const keys = this.#keys.get(name);
    const text = textOf(key);
    const refused = keys?.get(text);
    if (keys === undefined || refused === undefined || refused >= order) return;
    keys.delete(text);
    this.#count -= 1;
    if (keys.size === 0) this.#keys.delete(name);
  }

  /** The slice begins anew. */
  clear(slice: Slice): void {
    const name = formatSlice(slice);
    this.#count -= this.#keys.get(name)?.size ?? 0;
    this.#keys.delete(name);
  }
}

function textOf({ cluster, namespace, name }: ObjectName): string {
  return `${cluster}|${namespace}/${name}`;
}
