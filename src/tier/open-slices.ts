/**
 * The slices of one link that are in the middle of something at its receiver. Whoever runs the step owns it, and the step changes it: there
 * may be tens of thousands, which nobody copies for a frame.
 *
 * Those that wait for a type are found by it: a type is known or not, of whatever shard a slice of it is.
 */
import { formatResource } from '../domain/resource.js';
import { formatSlice, type Slice } from '../domain/slice.js';

/**
 * `objects`: put since `begin`. `hasLacked`: something was refused since the first `begin` that no `end` has followed. `parked`: its type is not known here, or was not, and what comes of it is passed over up to its next
 * `begin` with a type; `isAsked`: for that.
 */
export type OpenSlice = Readonly<
  { slice: Slice; phase: 'syncing'; objects: number; hasLacked: boolean } | { slice: Slice; phase: 'parked'; isAsked: boolean }
>;

export class OpenSlices {
  readonly #all = new Map<string, OpenSlice>();
  /** Parked and not asked for, by their types. */
  readonly #waiting = new Map<string, Map<string, Slice>>();

  get size(): number {
    return this.#all.size;
  }

  of(slice: Slice): OpenSlice | undefined {
    return this.#all.get(formatSlice(slice));
  }

  set(open: OpenSlice): void {
    const { slice } = open;
    const name = formatSlice(slice);
    this.#all.set(name, open);
    if (open.phase === 'syncing' || open.isAsked) return this.#leave(slice, name);
    const type = formatResource(slice.resource);
    this.#waiting.set(type, (this.#waiting.get(type) ?? new Map<string, Slice>()).set(name, slice));
  }

  delete(slice: Slice): void {
    const name = formatSlice(slice);
    if (this.#all.delete(name)) this.#leave(slice, name);
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
