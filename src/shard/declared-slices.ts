/**
 * Follows the ClusterCachedResources of a shard, and keeps one slice for each identity they declare: added when the first one
 * is usable, resynced when they change, withdrawn with the last one. It sees each ClusterCachedResource after it was sent in its own
 * slice, so that the cache knows a type before its objects come.
 *
 * Which slices the shard has is known once all ClusterCachedResources were read and each of them declares something: one that does
 * not yet may be about to declare what the cache holds.
 */
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import { formatResource, type Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import { readCachedResource, type CachedResource } from './cached-resource.js';
import { JoinedSource } from './joined-source.js';
import type { Read } from './kube-reader.js';
import { select, type SelectionRule } from './selection.js';
import type { SliceSink } from './slice-sink.js';
import type { Onlooker, SliceReader } from './slice-reader.js';

export type DeclaredSlicesParts = Readonly<{
  sink: SliceSink;
  clock: Clock;
  random: () => number;
  log: Log;
  /** Makes a reader of the objects that one ClusterCachedResource adds. */
  readerOf: (cached: CachedResource) => SliceReader;
}>;

/** `after`: the slice of ClusterCachedResources. `rule`: the one for them. */
export type DeclaredSlicesOptions = Readonly<{ shard: ShardName; after: Slice; rule: SelectionRule }>;

/** `said`: what its parts were made from. */
type Declared = { readonly slice: Slice; readonly source: JoinedSource; said: string };
/** By logical cluster and name. */
type Places = Map<string, CachedResource>;

const unknownShownMax = 10;

export class DeclaredSlices implements Onlooker {
  readonly #parts: DeclaredSlicesParts;
  readonly #options: DeclaredSlicesOptions;
  /** Usable ClusterCachedResources. */
  readonly #cached: Places = new Map();
  /** The same, by the text of the type that they declare. */
  readonly #byType = new Map<string, Places>();
  readonly #declared = new Map<string, Declared>();
  /** Those that do not declare anything yet. */
  readonly #unknown = new Set<string>();
  /** Those not named since the sync began; undefined outside of one. */
  #unmarked: Set<string> | undefined;
  /** Whether a sync of them was read to its end. */
  #isRead = false;
  #isComplete = false;

  constructor(parts: DeclaredSlicesParts, options: DeclaredSlicesOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  see(read: Read): void {
    switch (read.kind) {
      case 'begin':
        this.#unmarked = new Set([...this.#cached.keys(), ...this.#unknown]);
        return;
      case 'end':
        for (const place of this.#unmarked ?? []) this.#take(place, undefined);
        this.#unmarked = undefined;
        this.#isRead = true;
        return this.#reportComplete();
      default: {
        if (select(read.object, this.#options.rule) === 'ignored') return;
        const place = `${read.object.cluster}|${read.object.name}`;
        this.#unmarked?.delete(place);
        this.#take(place, read.kind === 'deleted' ? undefined : readCachedResource(read.object, this.#options.shard));
        this.#reportComplete();
      }
    }
  }

  #take(place: string, read: ReturnType<typeof readCachedResource> | undefined): void {
    if (read === 'unknown') {
      this.#unknown.add(place);
      // Before its slice is withdrawn: what it declares now is not known, so the cache must remove nothing of it.
      this.#reportComplete();
    } else this.#unknown.delete(place);
    this.#note(place, typeof read === 'string' ? undefined : read);
  }

  #reportComplete(): void {
    const isComplete = this.#isRead && this.#unknown.size === 0;
    if (isComplete === this.#isComplete) return;
    this.#isComplete = isComplete;
    if (!isComplete) this.#parts.log.info('shard.types.unknown', { clusterCachedResources: [...this.#unknown].slice(0, unknownShownMax) });
    this.#parts.sink.complete(isComplete);
  }

  #note(place: string, cached: CachedResource | undefined): void {
    const former = this.#cached.get(place);
    if (cached === undefined) this.#cached.delete(place);
    else this.#cached.set(place, cached);
    const [was, is] = [former, cached].map((each) => each && formatResource(each.resource));
    if (former !== undefined && was !== undefined && was !== is) {
      this.#byType.get(was)?.delete(place);
      this.#settle(former.resource);
    }
    if (cached === undefined || is === undefined) return;
    const places: Places = this.#byType.get(is) ?? new Map();
    this.#byType.set(is, places.set(place, cached));
    this.#settle(cached.resource);
  }

  /** Makes the slice of an identity what is declared now. */
  #settle(resource: Resource): void {
    const { sink, log, readerOf } = this.#parts;
    const { shard, after } = this.#options;
    const name = formatResource(resource);
    const all = [...(this.#byType.get(name)?.values() ?? [])];
    const declared = this.#declared.get(name);
    if (all.length === 0) {
      this.#byType.delete(name);
      if (declared === undefined) return;
      this.#declared.delete(name);
      sink.withdraw(declared.slice);
      log.info('shard.declared.withdrawn', { resource: name });
      return;
    }
    const bringing = all.filter(({ deleting }) => !deleting);
    const said = JSON.stringify(bringing);
    if (declared?.said === said) return;
    const readers = bringing.map((each) => readerOf(each));
    log.info('shard.declared', { resource: name, clusters: bringing.map(({ collection }) => collection.cluster) });
    if (declared !== undefined) {
      declared.said = said;
      declared.source.replace(readers);
      return;
    }
    const added: Declared = { slice: { shard, resource }, source: new JoinedSource(this.#parts, readers), said };
    this.#declared.set(name, added);
    sink.add(added.slice, added.source, { after });
  }
}
