/**
 * Slices that the other end of a link holds and this cache does not know. Each counts once towards
 * the bound, until this cache knows it.
 *
 *   added ──▶ can come from the shard's via ──▶ asked about, `askedMax` at a time; the others wait
 *     ▲                                    │
 *     └── its shard or its type is gone ───┘
 *
 * `askedMax` bounds the questions that one neighbour causes, to leave room for those of others.
 *
 * Bound: that of NamedSlices; with more, the link ends.
 */
import { NamedSlices } from '../../domain/slices/named-slices.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import { RequestedSlices } from './requested-slices.js';

const askedMax = 1_000;

export class UnknownSlices {
  readonly #ask: (slice: Slice) => void;
  readonly #byType = new Map<string, Map<string, Slice>>();
  readonly #asked = new RequestedSlices(askedMax);
  readonly #named = new NamedSlices();

  constructor(ask: (slice: Slice) => void) {
    this.#ask = ask;
  }

  get areTooMany(): boolean {
    return this.#named.isBeyond;
  }

  ofType(resource: Resource): readonly Slice[] {
    return [...(this.#byType.get(formatResource(resource))?.values() ?? [])];
  }

  requested(shard: ShardName): Iterable<Slice> {
    return this.#asked.of(shard);
  }

  add(slice: Slice): void {
    const type = formatResource(slice.resource);
    const ofType = this.#byType.get(type) ?? new Map<string, Slice>();
    const name = formatSlice(slice);
    if (ofType.has(name)) return;
    this.#byType.set(type, ofType.set(name, slice));
    this.#named.add(name);
  }

  /** The slice can arrive: asks about it, now or later. */
  want(slice: Slice): void {
    if (this.#asked.add(slice)) this.#ask(slice);
  }

  /** The slice cannot arrive now. */
  withdraw(slice: Slice): void {
    const next = this.#asked.delete(slice);
    if (next !== undefined) this.#ask(next);
  }

  delete(slice: Slice): void {
    if (this.#byType.size === 0) return;
    const type = formatResource(slice.resource);
    const ofType = this.#byType.get(type);
    const name = formatSlice(slice);
    if (ofType?.delete(name) !== true) return;
    if (ofType.size === 0) this.#byType.delete(type);
    this.#named.delete(name);
    this.withdraw(slice);
  }
}
