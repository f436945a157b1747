/**
 * The canonical paths by which the receiving half of a link checks objects without a path
 * annotation. A path that arrived over this link and is not durable yet takes precedence over the
 * store's.
 *
 *   read(frame) ──▶ accepts(object) … ──▶ decidedUpTo(sequence)   one look-up a frame; a path
 *                                                                 counts for the objects after it
 *
 * L1 The receiver learns a path only from an accepted object. An object that the policy refuses
 *    makes no other object acceptable.
 * L2 The receiver refuses an object that it could accept if its path were known. The slice is then
 *    stale. Once the receiver accepts another object with that path, it requests a resync. If no
 *    such object arrives, the next connection resyncs the slice (receiver-step.ts).
 *
 * Bounds: one path for each mutation that is not durable yet; `waitingMax` pairs of a slice and a
 * logical cluster. Further pairs wait for the next connection.
 */
import { parseCanonicalPath, parseClusterName, type CanonicalPath } from '../../domain/cluster.js';
import { clusterKeyOf, type Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Store } from '../../domain/store-port.js';
import type { Neighbour } from '../../domain/via.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { FrameOf } from '../../frames/frame.js';
import type { LinkFilters } from '../filters/link-filters.js';
import { anyPath, ownPathOf } from '../filters/predicate.js';

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
  /** The store's paths for the current frame. */
  #found: ReadonlyMap<string, CanonicalPath | undefined> = new Map();
  /** In the order of `sequence`. */
  readonly #brought = new Map<string, Brought>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #waitingAt = new Map<string, Set<Waiting>>();
  #waits = 0;
  /** Slices whose missing path has arrived. */
  readonly #due = new Set<Waiting>();
  /** The last mutation of the current frame. */
  #sequence = 0;
  #decidedUpTo = 0;

  constructor(parts: LinkPathsParts) {
    this.#parts = parts;
  }

  /**
   * Reads the store's paths for the frame, before its objects are checked. First drops the paths
   * that are durable. A path that becomes durable during the read is kept until the next frame.
   */
  async read({ slice, sequence, objects }: Pick<FrameOf<'put'>, 'slice' | 'sequence' | 'objects'>): Promise<void> {
    this.#sequence = sequence + objects.length - 1;
    for (const [place, brought] of this.#brought) {
      if (brought.sequence > this.#decidedUpTo) break;
      this.#brought.delete(place);
    }
    this.#found = new Map();
    const { filters, from, store } = this.#parts;
    if (filters()?.ownFrom(from).needsPath(slice) !== true) return;
    const clusters = [...new Set(objects.map(({ cluster }) => cluster))].flatMap((cluster) => parseClusterName(cluster) ?? []);
    const places = clusters.map((cluster) => ({ shard: slice.shard, cluster }));
    const paths = await store.paths.pathsOf(places);
    this.#found = new Map(places.map((place, i) => [clusterKeyOf(place), paths[i]]));
  }

  /**
   * Whether the policy of this end accepts the object. Learns the path of an accepted object, and
   * makes the slice wait if only the path is missing.
   */
  accepts(object: Pick<StoredObject, 'key' | 'body'>): boolean {
    const { filters, from } = this.#parts;
    const filter = filters()?.ownFrom(from);
    if (filter?.needsPaths !== true) return filter?.lets(object, undefined) ?? false;
    const { key, body } = object;
    const [own, place] = [ownPathOf(body), clusterKeyOf(key)];
    const isIn = filter.lets(object, this.#pathAt(place));
    if (isIn && own !== undefined) this.#learn(place, parseCanonicalPath(own));
    if (!isIn && own === undefined && filter.lets(object, anyPath)) this.#wait(key, place);
    return isIn;
  }

  /** Everything up to `sequence` is durable or refused. */
  decidedUpTo(sequence: number): void {
    this.#decidedUpTo = sequence;
  }

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

  /**
   * Removes and returns the slices that need a resync, because a path has arrived for them. A
   * slice stays due while its sync is under way.
   */
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
