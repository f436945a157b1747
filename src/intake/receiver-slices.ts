/**
 * What a receiver remembers of the slices of its sender. Whoever runs the step owns it, and the step changes it: there may be tens of thousands, which
 * nobody copies for a frame.
 *
 * Those that wait for a type are found by it: a type is known or not, of whatever shard a slice of it is.
 */
import { formatResource } from '../domain/resource.js';
import { formatSlice, type Slice } from '../domain/slice.js';

/**
 * `synced`: changes of it are taken without a `begin`; only a pusher's slices are remembered so.
 * `syncing`: `objects` were put since `begin`; `hasLacked`: something was refused since the first `begin` that no `end` has followed.
 * `stale`: what comes of it is dropped up to its next `begin`; `isAsked`: for that.
 */
export type ReceiverSlice = Readonly<
  | { slice: Slice; phase: 'synced' }
  | { slice: Slice; phase: 'syncing'; objects: number; hasLacked: boolean }
  | { slice: Slice; phase: 'stale'; isAsked: boolean }
>;

export class ReceiverSlices {
  readonly #all = new Map<string, ReceiverSlice>();
  /** Stale and not asked for, by their types. */
  readonly #waiting = new Map<string, Map<string, Slice>>();

  constructor(synced: readonly Slice[] = []) {
    for (const slice of synced) this.set({ slice, phase: 'synced' });
  }

  get size(): number {
    return this.#all.size;
  }

  of(slice: Slice): ReceiverSlice | undefined {
    return this.#all.get(formatSlice(slice));
  }

  set(next: ReceiverSlice): void {
    const { slice } = next;
    const name = formatSlice(slice);
    this.#all.set(name, next);
    if (next.phase !== 'stale' || next.isAsked) return this.#leave(slice, name);
    const type = formatResource(slice.resource);
    this.#waiting.set(type, (this.#waiting.get(type) ?? new Map<string, Slice>()).set(name, slice));
  }

  delete(slice: Slice): void {
    const name = formatSlice(slice);
    if (this.#all.delete(name)) this.#leave(slice, name);
  }

  /** Forgets all but these, each by its text. */
  keep(names: ReadonlySet<string>): void {
    for (const [name, { slice }] of this.#all) if (!names.has(name)) this.delete(slice);
  }

  /** Those that wait for a type which is known by now. */
  waiting(isKnown: (slice: Slice) => boolean): readonly Slice[] {
    return [...this.#waiting.values()].flatMap((ofType) => {
      const [first] = ofType.values();
      return first !== undefined && isKnown(first) ? [...ofType.values()] : [];
    });
  }

  #leave({ resource }: Slice, name: string): void {
    const type = formatResource(resource);
    const ofType = this.#waiting.get(type);
    if (ofType?.delete(name) === true && ofType.size === 0) this.#waiting.delete(type);
  }
}
