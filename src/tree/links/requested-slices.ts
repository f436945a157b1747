/**
 * The slices that this cache asks a neighbour about, at most `askedMax` at a time. Further slices
 * wait in the order in which they were added, until a question is withdrawn.
 *
 * The caller bounds the number of waiting slices.
 */
import { Line } from '../../domain/base/queues.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, type Slice } from '../../domain/slice.js';

export class RequestedSlices {
  readonly #askedMax: number;
  readonly #byShard = new Map<ShardName, Map<string, Slice>>();
  readonly #waiting = new Map<string, Slice>();
  readonly #line = new Line<string>();
  #count = 0;

  constructor(askedMax: number) {
    this.#askedMax = askedMax;
  }

  of(shard: ShardName): Iterable<Slice> {
    return this.#byShard.get(shard)?.values() ?? [];
  }

  /**
   * Returns true if the caller must ask about the slice now: it is new, and fewer than `askedMax`
   * are asked about.
   */
  add(slice: Slice): boolean {
    const name = formatSlice(slice);
    if (this.#waiting.has(name) || this.#byShard.get(slice.shard)?.has(name) === true) return false;
    if (this.#count < this.#askedMax) return this.#ask(slice);
    this.#waiting.set(name, slice);
    this.#line.add(name);
    return false;
  }

  /**
   * Withdraws the question about the slice. Returns the waiting slice that the caller must ask
   * about instead.
   */
  delete(slice: Slice): Slice | undefined {
    const name = formatSlice(slice);
    const ofShard = this.#byShard.get(slice.shard);
    if (this.#leaveLine(name) || ofShard?.delete(name) !== true) return undefined;
    if (ofShard.size === 0) this.#byShard.delete(slice.shard);
    this.#count -= 1;
    const next = this.#takeWaiting();
    if (next !== undefined) this.#ask(next);
    return next;
  }

  #ask(slice: Slice): true {
    const ofShard = this.#byShard.get(slice.shard) ?? new Map<string, Slice>();
    this.#byShard.set(slice.shard, ofShard.set(formatSlice(slice), slice));
    this.#count += 1;
    return true;
  }

  #takeWaiting(): Slice | undefined {
    const name = this.#line.first;
    if (name === undefined) return undefined;
    const next = this.#waiting.get(name);
    this.#leaveLine(name);
    return next;
  }

  #leaveLine(name: string): boolean {
    this.#line.delete(name);
    return this.#waiting.delete(name);
  }
}
