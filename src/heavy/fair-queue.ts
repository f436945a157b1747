/**
 * A queue whose owners take turns. An owner with many items waits for its own items; any other
 * owner waits for only one of them.
 *
 *   owner a: ■ ■ ■ ■ ┐
 *   owner b: ■       ├▶ a b c a c a a
 *   owner c: ■ ■     ┘
 *
 * Bounds: `itemsMax` and `bytesMax` in all, and half of each for one owner.
 */
export type FairQueueLimits = Readonly<{ itemsMax: number; bytesMax: number }>;

type Waiting<Item> = Readonly<{ item: Item; bytes: number }>;

export class FairQueue<Item> {
  readonly #limits: FairQueueLimits;
  /** Owners in the order of their turns, each with at least one item. */
  readonly #owners = new Map<string, Waiting<Item>[]>();
  #items = 0;
  #bytes = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  /** Returns false if there is no room for the item. */
  add(owner: string, item: Item, bytes: number): boolean {
    const { itemsMax, bytesMax } = this.#limits;
    const own = this.#owners.get(owner) ?? [];
    const ownBytes = own.reduce((sum, waiting) => sum + waiting.bytes, bytes);
    if (this.#items >= itemsMax || this.#bytes + bytes > bytesMax) return false;
    if (own.length >= itemsMax / 2 || ownBytes > bytesMax / 2) return false;
    own.push({ item, bytes });
    this.#owners.set(owner, own);
    this.#items += 1;
    this.#bytes += bytes;
    return true;
  }

  take(): Item | undefined {
    for (const [owner, own] of this.#owners) {
      const next = own.shift();
      this.#owners.delete(owner);
      if (own.length > 0) this.#owners.set(owner, own);
      if (next === undefined) continue;
      this.#items -= 1;
      this.#bytes -= next.bytes;
      return next.item;
    }
    return undefined;
  }
}
