/**
 * A map that is read from any key on, in the order of the keys' UTF-8 bytes, which is etcd's order.
 * A change costs the logarithm of the size and a shift within one leaf of `leafMax` keys. If the
 * map changes during a read, the read still yields every key that was there all the time.
 */
import { compareTexts, compareUtf8 } from '../../domain/syntax/version-order.js';

type Leaf<Value> = { readonly keys: string[]; readonly values: Value[] };

const leafMax = 512;
const surrogate = /[\ud800-\udfff]/;

export class OrderedMap<Value> {
  /** No leaf is empty, unless the map is. */
  readonly #leaves: Leaf<Value>[] = [{ keys: [], values: [] }];
  #size = 0;
  /** Rises when a key is added or removed. A read under way then searches its place again. */
  #changes = 0;
  #hasSurrogates = false;

  get size(): number {
    return this.#size;
  }

  get(key: string): Value | undefined {
    const [number, at] = this.#find(key);
    const leaf = this.#leaves[number]!;
    return leaf.keys[at] === key ? leaf.values[at] : undefined;
  }

  set(key: string, value: Value): void {
    if (surrogate.test(key)) this.#hasSurrogates = true;
    const [number, at] = this.#find(key);
    const leaf = this.#leaves[number]!;
    if (leaf.keys[at] === key) {
      leaf.values[at] = value;
      return;
    }
    leaf.keys.splice(at, 0, key);
    leaf.values.splice(at, 0, value);
    this.#size += 1;
    this.#changes += 1;
    if (leaf.keys.length > leafMax) this.#split(number);
  }

  /** Returns false if the key was not there. */
  delete(key: string): boolean {
    const [number, at] = this.#find(key);
    const leaf = this.#leaves[number]!;
    if (leaf.keys[at] !== key) return false;
    leaf.keys.splice(at, 1);
    leaf.values.splice(at, 1);
    this.#size -= 1;
    this.#changes += 1;
    if (leaf.keys.length === 0 && this.#leaves.length > 1) this.#leaves.splice(number, 1);
    return true;
  }

  /** The entries behind `after`; by default all entries. */
  *entries(after = ''): Iterable<readonly [key: string, value: Value]> {
    let last = after;
    for (;;) {
      const changes = this.#changes;
      let [number, at] = this.#find(last);
      if (this.#leaves[number]!.keys[at] === last) at += 1;
      do {
        if (at === this.#leaves[number]!.keys.length) [number, at] = [number + 1, 0];
        const leaf = this.#leaves[number];
        if (leaf === undefined || at >= leaf.keys.length) return;
        last = leaf.keys[at]!;
        yield [last, leaf.values[at]!];
        at += 1;
      } while (changes === this.#changes);
    }
  }

  /** The leaf for the key, and the index there of the first key that is not lower. */
  #find(key: string): readonly [leaf: number, at: number] {
    // JavaScript's own comparison is several times as fast, and correct without surrogates.
    const compare = this.#hasSurrogates || surrogate.test(key) ? compareUtf8 : compareTexts;
    let [low, high] = [0, this.#leaves.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (compare(this.#leaves[middle]!.keys[0]!, key) <= 0) low = middle;
      else high = middle - 1;
    }
    const { keys } = this.#leaves[low]!;
    let [from, to] = [0, keys.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (compare(keys[middle]!, key) < 0) from = middle + 1;
      else to = middle;
    }
    return [low, from];
  }

  #split(number: number): void {
    const { keys, values } = this.#leaves[number]!;
    const half = keys.length >> 1;
    this.#leaves.splice(number + 1, 0, { keys: keys.splice(half), values: values.splice(half) });
  }
}
