/**
 * Slices that the other end of a link holds, and of which nothing is known here. Each counts once, until it is known.
 *
 *   noted ──▶ it can come from where its shard lives ──▶ asked about, `askedMax` of them at a time, so that one neighbour
 *     ▲                                    │             does not use up what may be asked for all; the others wait
 *     └── its shard or its type has gone ──┘
 *
 * Bound: what the other end may say that it holds (slice-syncs.ts).
 */
import { formatResource, type Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { AskedSlices } from './asked-slices.js';

const askedMax = 1_000;

export class UnknownSlices {
  readonly #ask: (slice: Slice) => void;
  readonly #byType = new Map<string, Map<string, Slice>>();
  readonly #asked = new AskedSlices(askedMax);
  #count = 0;

  constructor(ask: (slice: Slice) => void) {
    this.#ask = ask;
  }

  get count(): number {
    return this.#count;
  }

  ofType(resource: Resource): readonly Slice[] {
    return [...(this.#byType.get(formatResource(resource))?.values() ?? [])];
  }

  /** Those of a shard that are asked about now. */
  asked(shard: ShardName): Iterable<Slice> {
    return this.#asked.of(shard);
  }

  note(slice: Slice): void {
    const type = formatResource(slice.resource);
    const ofType = this.#byType.get(type) ?? new Map<string, Slice>();
    const before = ofType.size;
    this.#byType.set(type, ofType.set(formatSlice(slice), slice));
    this.#count += ofType.size - before;
  }

  /** It can be had: ask about it, perhaps later. */
  want(slice: Slice): void {
    if (this.#asked.add(slice)) this.#ask(slice);
  }

  /** It cannot be had for now. */
  withdraw(slice: Slice): void {
    const next = this.#asked.delete(slice);
    if (next !== undefined) this.#ask(next);
  }

  /** It is known. */
  delete(slice: Slice): void {
    if (this.#count === 0) return;
    const type = formatResource(slice.resource);
    const ofType = this.#byType.get(type);
    if (ofType?.delete(formatSlice(slice)) !== true) return;
    if (ofType.size === 0) this.#byType.delete(type);
    this.#count -= 1;
    this.withdraw(slice);
  }
}
