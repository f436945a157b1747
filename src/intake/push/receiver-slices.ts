/**
 * A receiver's state of its sender's slices. A step changes this state in place, because copying
 * tens of thousands of slices for each frame would cost too much.
 *
 * Slices that wait for their type are indexed by type. A type is declared for all shards or for
 * none.
 *
 * Single logical clusters are synced while their slice is synced or syncing. A `begin` voids these
 * syncs, and so does a change of the slice to stale.
 */
import { entryOf } from '../../domain/base/entry-of.js';
import { formatResource } from '../../domain/resource.js';
import { formatSlice, type Slice } from '../../domain/slice.js';

/**
 * `synced`: changes are accepted without a `begin`; only for a pusher's slices. `syncing`:
 * `objects` were put since `begin`. `hasLacked`: an object was refused in this sync, or in earlier
 * syncs without an `end`. `stale`: frames are dropped up to the next `begin`; `isAsked`: a resync
 * was requested.
 */
export type ReceiverSlice = Readonly<
  | { slice: Slice; phase: 'synced' }
  | { slice: Slice; phase: 'syncing'; objects: number; hasLacked: boolean }
  | { slice: Slice; phase: 'stale'; isAsked: boolean }
>;

export type ClusterOpened = 'opened' | 'open already' | 'too many';

/** Maximum logical clusters that are syncing or kept in one connection. */
const clustersMax = 50_000;

export class ReceiverSlices {
  readonly #all = new Map<string, ReceiverSlice>();
  /**
   * Keyed by slice, then by logical cluster. A number counts the objects put since the logical
   * cluster's sync began. 'kept': the slice's `end` leaves the logical cluster unchanged, until its
   * sync begins.
   */
  readonly #clusters = new Map<string, Map<string, number | 'kept'>>();
  #clusterCount = 0;
  /** Stale slices whose resync was not requested, keyed by type. */
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
    if (next.phase === 'stale') this.#forgetClusters(name);
    if (next.phase !== 'stale' || next.isAsked) return this.#leave(slice, name);
    const type = formatResource(slice.resource);
    entryOf(this.#waiting, type, () => new Map<string, Slice>()).set(name, slice);
  }

  delete(slice: Slice): void {
    const name = formatSlice(slice);
    this.#forgetClusters(name);
    if (this.#all.delete(name)) this.#leave(slice, name);
  }

  /**
   * A sync of the whole slice begins. `hasLacked`: an object was refused in an earlier sync without
   * an `end`.
   */
  begin(slice: Slice, hasLacked: boolean): void {
    this.#forgetClusters(formatSlice(slice));
    this.set({ slice, phase: 'syncing', objects: 0, hasLacked });
  }

  /**
   * `clusterKeep` does not change a logical cluster that is syncing. `clusterBegin` restarts its
   * sync.
   */
  openCluster(slice: Slice, { kind, cluster }: Readonly<{ kind: 'clusterBegin' | 'clusterKeep'; cluster: string }>): ClusterOpened {
    const before = this.#clusters.get(formatSlice(slice))?.get(cluster);
    if (kind === 'clusterKeep' && typeof before === 'number') return 'open already';
    if (before === undefined) {
      if (this.#clusterCount === clustersMax) return 'too many';
      this.#clusterCount += 1;
    }
    const clusters = entryOf(this.#clusters, formatSlice(slice), () => new Map<string, number | 'kept'>());
    clusters.set(cluster, kind === 'clusterKeep' ? 'kept' : 0);
    return 'opened';
  }

  /**
   * Returns the number of objects put since the logical cluster began; undefined if it did not
   * begin.
   */
  endCluster(slice: Slice, cluster: string): number | undefined {
    const name = formatSlice(slice);
    const clusters = this.#clusters.get(name);
    const objects = clusters?.get(cluster);
    if (clusters === undefined || typeof objects !== 'number') return undefined;
    clusters.delete(cluster);
    this.#clusterCount -= 1;
    if (clusters.size === 0) this.#clusters.delete(name);
    return objects;
  }

  /** Counts put objects for the slice and for their logical clusters. */
  put(slice: Slice, objects: readonly Readonly<{ cluster: string }>[]): void {
    const known = this.of(slice);
    if (known?.phase === 'syncing') this.set({ ...known, objects: known.objects + objects.length });
    const clusters = this.#clusterCount === 0 ? undefined : this.#clusters.get(formatSlice(slice));
    if (clusters === undefined) return;
    for (const { cluster } of objects) {
      const before = clusters.get(cluster);
      if (typeof before === 'number') clusters.set(cluster, before + 1);
    }
  }

  /**
   * Forgets all slices but `names`, which are `formatSlice` texts. Returns the forgotten slices
   * that had syncing or kept logical clusters.
   */
  keep(names: ReadonlySet<string>): readonly Slice[] {
    const broken: Slice[] = [];
    for (const [name, { slice }] of this.#all) {
      if (names.has(name)) continue;
      if (this.#clusters.has(name)) broken.push(slice);
      this.delete(slice);
    }
    return broken;
  }

  waiting(isKnown: (slice: Slice) => boolean): readonly Slice[] {
    return [...this.#waiting.values()].flatMap((ofType) => {
      const [first] = ofType.values();
      return first !== undefined && isKnown(first) ? [...ofType.values()] : [];
    });
  }

  #forgetClusters(name: string): void {
    this.#clusterCount -= this.#clusters.get(name)?.size ?? 0;
    this.#clusters.delete(name);
  }

  #leave({ resource }: Slice, name: string): void {
    const type = formatResource(resource);
    const ofType = this.#waiting.get(type);
    if (ofType?.delete(name) === true && ofType.size === 0) this.#waiting.delete(type);
  }
}
