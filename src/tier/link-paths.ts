/**
 * The canonical paths by which the receiving half of a link checks objects that name none: those that the store has of the shard's
 * logical clusters, and before them those that this link has brought and that are not durable yet.
 *
 *   read(frame) ──▶ accepts(object) … ──▶ settled(sequence)      one look-up a frame; paths in a frame hold for what comes after it
 *
 * L1 Only an accepted object teaches a path: what the policy refuses makes nothing else acceptable.
 * L2 An object that is refused for its path alone may be accepted once another object brings that path. Its slice is stale until then, and
 *    resynced as soon as such an object is accepted, or with the next connection (intake/receiver-step.ts).
 * Bounds: a path for each mutation that is not durable yet; `waitingMax` pairs of a slice and a logical cluster. What is beyond them waits for
 * the next connection.
 */
import { parseCanonicalPath, parseClusterName, type CanonicalPath } from '../domain/cluster.js';
import type { Key } from '../domain/key.js';
import type { StoredObject } from '../domain/object.js';
import type { Store } from '../domain/store-port.js';
import type { Neighbour } from '../domain/via.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { FrameOf } from '../frames/frame.js';
import type { LinkFilters } from './link-filters.js';
import { ownPathOf } from './predicate.js';

export type LinkPathsParts = Readonly<{
  store: Pick<Store, 'paths'>;
  from: Neighbour;
  /** Undefined before the policies of both ends are known. */
  filters: () => LinkFilters | undefined;
}>;

type Brought = Readonly<{ path: CanonicalPath; sequence: number }>;

type Waiting = Readonly<{ slice: Slice; places: Set<string> }>;

const waitingMax = 10_000;

export class LinkPaths {
  readonly #parts: LinkPathsParts;
  /** The store's paths for the frame that is being checked. */
  #found: ReadonlyMap<string, CanonicalPath | undefined> = new Map();
  /** In the order of their numbers. */
  readonly #brought = new Map<string, Brought>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #waitingAt = new Map<string, Set<Waiting>>();
  #waits = 0;
  /** Those whose path has come. */
  readonly #due = new Set<Waiting>();
  /** The last mutation of the frame that is being checked. */
  #sequence = 0;
  #settled = 0;

  constructor(parts: LinkPathsParts) {
    this.#parts = parts;
  }

  /** Called before anything of the frame is checked. What becomes durable meanwhile is remembered until the next one. */
  async read({ slice, sequence, objects }: Pick<FrameOf<'put'>, 'slice' | 'sequence' | 'objects'>): Promise<void> {
    this.#sequence = sequence + objects.length - 1;
    for (const [place, brought] of this.#brought) {
      if (brought.sequence > this.#settled) break;
      this.#brought.delete(place);
    }
    this.#found = new Map();
    const { filters, from, store } = this.#parts;
    if (filters()?.asksPath(slice, from) !== true) return;
    const clusters = [...new Set(objects.map(({ cluster }) => cluster))].flatMap((cluster) => parseClusterName(cluster) ?? []);
    const places = clusters.map((cluster) => ({ shard: slice.shard, cluster }));
    const paths = await store.paths.pathsOf(places);
    this.#found = new Map(places.map((place, i) => [placeOf(place), paths[i]]));
  }

  /** Whether the policy of this end accepts an object. */
  accepts(object: Pick<StoredObject, 'key' | 'body'>): boolean {
    const { filters: filtersNow, from } = this.#parts;
    const filters = filtersNow();
    if (filters?.asksPaths(from) !== true) return filters?.accepts(object, from, undefined) ?? false;
    const { key, body } = object;
    const [own, place] = [ownPathOf(body), placeOf(key)];
    const isIn = filters.accepts(object, from, this.#pathAt(place));
    if (isIn && own !== undefined) this.#learn(place, parseCanonicalPath(own));
    if (!isIn && own === undefined && filters.acceptsSomewhere(object, from)) this.#wait(key, place);
    return isIn;
  }

  /** Everything up to that number is durable, or was refused. */
  settled(sequence: number): void {
    this.#settled = sequence;
  }

  /** The slice is being synced again. */
  begun(slice: Slice): void {
    const waiting = this.#waiting.get(formatSlice(slice));
    if (waiting === undefined) return;
    this.#waiting.delete(formatSlice(slice));
    this.#due.delete(waiting);
    this.#waits -= waiting.places.size;
    for (const place of waiting.places) {
      const others = this.#waitingAt.get(place);
      others?.delete(waiting);
      if (others?.size === 0) this.#waitingAt.delete(place);
    }
  }

  /** Slices to resync, because a path has come. One that is still coming is asked for once it has come. */
  takeDue(isComing: (slice: Slice) => boolean): readonly Slice[] {
    const due = [...this.#due].filter(({ slice }) => !isComing(slice));
    for (const waiting of due) this.#due.delete(waiting);
    return due.map(({ slice }) => slice);
  }

  #learn(place: string, path: CanonicalPath | undefined): void {
    if (path === undefined || path === this.#pathAt(place)) return;
    this.#brought.delete(place);
    this.#brought.set(place, { path, sequence: this.#sequence });
    for (const waiting of this.#waitingAt.get(place) ?? []) this.#due.add(waiting);
  }

  #wait({ shard, resource }: Key, place: string): void {
    if (this.#waits >= waitingMax) return;
    const slice: Slice = { shard, resource };
    const waiting = this.#waiting.get(formatSlice(slice)) ?? { slice, places: new Set<string>() };
    this.#waiting.set(formatSlice(slice), waiting);
    if (waiting.places.has(place)) return;
    this.#waits += 1;
    waiting.places.add(place);
    this.#waitingAt.set(place, (this.#waitingAt.get(place) ?? new Set<Waiting>()).add(waiting));
  }

  #pathAt(place: string): CanonicalPath | undefined {
    return this.#brought.get(place)?.path ?? this.#found.get(place);
  }
}

function placeOf({ shard, cluster }: Pick<Key, 'shard' | 'cluster'>): string {
  return `${shard}|${cluster}`;
}
