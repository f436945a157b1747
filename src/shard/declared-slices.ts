/**
 * Follows the ClusterCachedResources of a shard, and keeps one slice for each identity they
 * declare. It adds the slice with the first usable ClusterCachedResource, and withdraws it with the
 * last. When the ClusterCachedResources of one logical cluster change, only that logical cluster is
 * synced again, at the pace of edit-pace.ts.
 *
 * A ClusterCachedResource takes effect after it was sent in its own slice, so that the cache knows
 * a type before its objects arrive. Changes within a sync of ClusterCachedResources take effect
 * together, at its end.
 *
 * The set of slices is known once all ClusterCachedResources were read and each of them declares a
 * type. A ClusterCachedResource without a type may soon declare one whose objects the cache must
 * keep.
 */
import type { Log } from '../diagnostics/log.js';
import { entryOf } from '../domain/base/entry-of.js';
import type { Clock } from '../domain/ports.js';
import { formatResource, type Resource } from '../domain/resource.js';
import type { Slice } from '../domain/slice.js';
import type { ClusterName } from '../domain/cluster.js';
import { readCachedResource, type CachedResource, type DeclaringShard } from './cached-resource.js';
import { PerClusterSource } from './per-cluster-source.js';
import { EditPace } from './edit-pace.js';
import type { Read } from '../kube/kube-reader.js';
import type { Sender } from '../sender/sender.js';
import { select, type SelectionRule } from './selection.js';
import type { ReadObserver, SliceReader } from './slice-reader.js';

export type DeclaredSlicesParts = Readonly<{
  sink: SliceSink;
  clock: Clock;
  log: Log;
  /**
   * Creates a reader of the objects that the ClusterCachedResources of one type and logical cluster
   * select.
   */
  readerOf: (ofCluster: readonly [CachedResource, ...CachedResource[]]) => SliceReader;
}>;

/**
 * `after`: the slice of ClusterCachedResources. `rule`: the selection rule for that slice.
 * `areFollowed`: whether the agent receives changes of ClusterCachedResources from the shard, as
 * far as known.
 */
export type DeclaredSlicesOptions = DeclaringShard & Readonly<{ after: Slice; rule: SelectionRule; areFollowed: () => boolean }>;

/**
 * `declaredTexts`: for each logical cluster, the declarations from which its reader was created.
 */
type Declared = Readonly<{ slice: Slice; parts: PerClusterSource; declaredTexts: Map<ClusterName, string> }>;
/** Keyed by logical cluster and name. */
type Places = Map<string, CachedResource>;

const unknownShownMax = 10;

export class DeclaredSlices implements ReadObserver {
  readonly #parts: DeclaredSlicesParts;
  readonly #options: DeclaredSlicesOptions;
  readonly #cached: Places = new Map();
  /**
   * The usable ClusterCachedResources by the text of the declared type, then by logical cluster.
   */
  readonly #byType = new Map<string, Map<ClusterName, Places>>();
  readonly #declared = new Map<string, Declared>();
  readonly #pace: EditPace;
  /** Types and logical clusters that have changed within the sync under way. */
  readonly #changed = new Map<string, readonly [Resource, ClusterName]>();
  /** ClusterCachedResources that declare no type yet. */
  readonly #unknown = new Set<string>();
  /** ClusterCachedResources not seen since the sync began; undefined outside a sync. */
  #unseen: Set<string> | undefined;
  /** Whether a sync of the ClusterCachedResources was read completely. */
  #isRead = false;
  #isComplete = false;

  constructor(parts: DeclaredSlicesParts, options: DeclaredSlicesOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#pace = new EditPace(parts.clock);
  }

  close(): void {
    this.#pace.close();
  }

  observe(read: Read): void {
    switch (read.kind) {
      case 'begin':
        this.#unseen = new Set([...this.#cached.keys(), ...this.#unknown]);
        return;
      case 'end':
        for (const place of this.#unseen ?? []) this.#take(place, undefined);
        this.#unseen = undefined;
        this.#isRead = true;
        for (const [resource, cluster] of this.#changed.values()) this.#settle(resource, cluster);
        this.#changed.clear();
        return this.#reportComplete();
      case 'bookmark':
        return;
      default: {
        if (select(read.object, this.#options.rule) === 'ignored') return;
        const place = `${read.object.cluster}|${read.object.name}`;
        this.#unseen?.delete(place);
        this.#take(place, read.kind === 'deleted' ? undefined : readCachedResource(read.object, this.#options));
        this.#reportComplete();
      }
    }
  }

  #take(place: string, read: ReturnType<typeof readCachedResource> | undefined): void {
    if (read === 'unknown') {
      this.#unknown.add(place);
      // Report before the slice is withdrawn. The new declaration is not known yet, so the cache
      // must keep the objects of the slice.
      this.#reportComplete();
    } else this.#unknown.delete(place);
    this.#record(place, typeof read === 'string' ? undefined : read);
  }

  #reportComplete(): void {
    const isComplete = this.#isRead && this.#unknown.size === 0;
    if (isComplete === this.#isComplete) return;
    this.#isComplete = isComplete;
    if (!isComplete) this.#parts.log.info('shard.types.unknown', { clusterCachedResources: [...this.#unknown].slice(0, unknownShownMax) });
    this.#parts.sink.complete(isComplete);
  }

  #record(place: string, cached: CachedResource | undefined): void {
    const former = this.#cached.get(place);
    if (cached === undefined) this.#cached.delete(place);
    else this.#cached.set(place, cached);
    if (former !== undefined) this.#leave(place, former);
    if (cached !== undefined) this.#enter(place, cached);
    for (const each of [former, cached]) if (each !== undefined) this.#changedAt(each);
  }

  #enter(place: string, cached: CachedResource): void {
    const ofType = entryOf(this.#byType, formatResource(cached.resource), () => new Map<ClusterName, Places>());
    entryOf(ofType, cached.cluster, (): Places => new Map()).set(place, cached);
  }

  #leave(place: string, { resource, cluster }: CachedResource): void {
    const type = formatResource(resource);
    const ofType = this.#byType.get(type);
    const ofCluster = ofType?.get(cluster);
    ofCluster?.delete(place);
    if (ofCluster?.size === 0) ofType?.delete(cluster);
    if (ofType?.size === 0) this.#byType.delete(type);
  }

  #changedAt({ resource, cluster }: CachedResource): void {
    if (this.#unseen === undefined) this.#settle(resource, cluster);
    else this.#changed.set(`${formatResource(resource)} ${cluster}`, [resource, cluster]);
  }

  /** Makes the reading of a type in one logical cluster match its declarations. */
  #settle(resource: Resource, cluster: ClusterName): void {
    const name = formatResource(resource);
    if (!this.#byType.has(name)) return this.#withdraw(name);
    const { parts, declaredTexts } = this.#declared.get(name) ?? this.#add(resource);
    if (declaredTexts.get(cluster) === this.#declaredTextOf(name, cluster)) return;
    parts.announce(cluster);
    this.#pace.edited(`${name} ${cluster}`, () => this.#apply(name, cluster));
  }

  #apply(name: string, cluster: ClusterName): void {
    const declared = this.#declared.get(name);
    if (declared === undefined) return;
    const { parts, declaredTexts } = declared;
    const [bringing, says] = [this.#contributing(name, cluster), this.#declaredTextOf(name, cluster)];
    if (declaredTexts.get(cluster) === says) return parts.keepSource(cluster);
    if (says === undefined) declaredTexts.delete(cluster);
    else declaredTexts.set(cluster, says);
    const [first, ...others] = bringing;
    this.#parts.log.info('shard.declared', { resource: name, cluster, clusterCachedResources: bringing.length });
    parts.setSource(cluster, first && this.#parts.readerOf([first, ...others]));
  }

  #add(resource: Resource): Declared {
    const { shard, after, areFollowed } = this.#options;
    const isDeclared = (): boolean => areFollowed() && this.#unseen === undefined;
    const parts = new PerClusterSource({ clock: this.#parts.clock, isDeclared });
    const declared: Declared = { slice: { shard, resource }, parts, declaredTexts: new Map() };
    this.#declared.set(formatResource(resource), declared);
    this.#parts.sink.add(declared.slice, declared.parts, { after });
    return declared;
  }

  #withdraw(name: string): void {
    const declared = this.#declared.get(name);
    if (declared === undefined) return;
    this.#declared.delete(name);
    this.#parts.sink.withdraw(declared.slice);
    this.#parts.log.info('shard.declared.withdrawn', { resource: name });
  }

  /** Undefined if no objects of the logical cluster are to be read. */
  #declaredTextOf(name: string, cluster: ClusterName): string | undefined {
    const bringing = this.#contributing(name, cluster);
    return bringing.length === 0 ? undefined : JSON.stringify(bringing);
  }

  /** The ClusterCachedResources whose objects belong in the cache, by name. */
  #contributing(name: string, cluster: ClusterName): readonly CachedResource[] {
    const places = [...(this.#byType.get(name)?.get(cluster) ?? [])].filter(([, { deleting }]) => !deleting);
    return places.toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, cached]) => cached);
  }
}

/** The part of a sender that the agent needs. Tests replace it. */
export type SliceSink = Pick<Sender, 'add' | 'withdraw' | 'complete'>;
