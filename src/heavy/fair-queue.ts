/**
 * Work that waits, of several owners who take turns: an owner who asks for much waits behind itself, the others behind one task of it.
 *
 *   owner a: ■ ■ ■ ■ ┐
 *   owner b: ■       ├▶ a b c a c a a        Bounds: `itemsMax` and `bytesMax` in all, half as much of each for one owner.
 *   owner c: ■ ■     ┘
 */
export type FairQueueLimits = Readonly<{ itemsMax: number; bytesMax: number }>;

type Waiting<Item> = Readonly<{ item: Item; bytes: number }>;

export class FairQueue<Item> {
  readonly #limits: FairQueueLimits;
  /** In the order of their turns; none is empty. */
  readonly #owners = new Map<string, Waiting<Item>[]>();
  #items = 0;
  #bytes = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  /** False when there is no room for it, and then it is not in the queue. */
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

  /** The next one, of the owner whose turn it is. */
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
