/**
 * Syncs and removals under way, as the committer remembers them. A restart forgets them. After a
 * failed commit, the committer forgets the syncs of the shards whose pushers pushed in it. If a
 * link pushed in it, the committer forgets all syncs. The `end` of a forgotten sync is answered
 * `unbegun`.
 *
 * I17 A removal keeps the revision at which it began: objects written or synced since then stay. It
 *     ends early only if a commit with one of its steps fails. Two removals of one shard do not
 *     affect each other.
 *
 * A sync of one logical cluster has its own marks, from its own `begin`. Objects that it confirms
 * are also confirmed for the sync of the whole slice. A slice is synced after its own `end`. Each
 * logical cluster whose sync is then under way must also have had an `end` since the slice's
 * `begin`; until then, some of its objects may be missing here.
 *
 * Bound: one sync per slice, one per logical cluster that a pusher has begun, and one removal per
 * lane, each with its marks.
 */
import { entryOf } from '../domain/base/entry-of.js';
import { inBuckets, type BucketSet } from '../domain/slices/buckets.js';
import type { ClusterName } from '../domain/cluster.js';
import type { Push } from '../domain/push.js';
import type { Revision } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { BatchItem } from './batch-item.js';
import { Marks } from './marks.js';

/** A slice, and the id of its type in the tables. */
export type NumberedSlice = Readonly<{ id: number; slice: Slice }>;

export type SliceRange = Readonly<{ shard: ShardName } | { resource: number }>;

/** `now`: the revision of the last commit. `through`: see `beginRemoval`. */
type RemovalStart = Readonly<{ now: Revision; through: Revision | undefined }>;

/** A walk through the objects of its slices, in key order, that removes unmarked ones. */
export type Walk = {
  /** Unique and above 0. A `resume` names the walk by this number. */
  readonly number: number;
  readonly marks: Marks;
  /** Whether an object without a mark may be removed. */
  readonly mayRemove: ReturnType<typeof inBuckets>;
  /** The only logical cluster of the walk; '' for all. */
  readonly cluster: ClusterName | '';
  /** The slices that are left. In the first one, the walk continues after the key `after`. */
  readonly slices: NumberedSlice[];
  after: readonly [cluster: string, namespace: string, name: string];
};

export type Sync = { readonly marks: Marks; walk: Walk | undefined };

type End = Extract<Push, { kind: 'end' }>;

/**
 * `running`: syncs by logical cluster; '' is the sync of the whole slice. `ended`: logical clusters
 * whose sync ended since the sync of the whole slice began. `awaits`: the `end` of the whole slice,
 * and the logical clusters whose own `end` is still missing.
 */
type SyncsOfSlice = Readonly<{ running: Map<string, Sync>; ended: Set<string> }> & {
  awaits: Readonly<{ end: End; clusters: Set<string> }> | undefined;
};

/** Where an object is; namespace and name may be missing. */
type Place = readonly [resource: number, shard: string, cluster: string, ...names: readonly string[]];

/** `spared`: logical clusters from which the walk removes nothing. */
type WalkBounds = Readonly<{ buckets?: BucketSet | undefined; cluster?: ClusterName | ''; spared?: ReadonlySet<string> | undefined }>;

const nothing: ReadonlySet<string> = new Set();

export class Syncs {
  readonly #syncs = new Map<string, Map<number, SyncsOfSlice>>();
  readonly #removals = new Map<number, Readonly<{ range: SliceRange; walk: Walk }>>();
  /** Removals with a step in the commit under way. */
  readonly #moved = new Set<number>();
  #walks = 0;

  /** Begins a commit. */
  open(): void {
    this.#moved.clear();
  }

  /**
   * The commit of this batch has failed; `revision` is still the last one. Syncs that the batch
   * made void stay void. If the batch has a push of a link, all syncs become void.
   */
  undo(revision: Revision, batch: readonly BatchItem[]): void {
    for (const asked of batch) {
      const push = asked.kind === 'resume' ? asked.push : asked;
      if (push.kind === 'meet' || push.kind === 'reach' || ('by' in push && push.by.kind === 'link')) this.#syncs.clear();
      else if ('by' in push) this.#syncs.delete('key' in push ? push.key.shard : push.slice.shard);
    }
    for (const ofShard of this.#syncs.values())
      for (const { running } of ofShard.values()) for (const { marks } of running.values()) marks.undo(revision);
    for (const number of this.#moved) this.#removals.delete(number);
    for (const { walk } of this.#removals.values()) walk.marks.undo(revision);
  }

  /**
   * Replaces the sync under way. The sync of a whole slice also replaces the syncs of its logical
   * clusters.
   */
  begin(shard: ShardName, resource: number, start: Revision, cluster: ClusterName | '' = ''): void {
    const ofShard = entryOf(this.#syncs, shard, () => new Map<number, SyncsOfSlice>());
    const known = cluster === '' ? undefined : ofShard.get(resource);
    const ofSlice: SyncsOfSlice = known ?? { running: new Map(), ended: new Set(), awaits: undefined };
    ofSlice.running.set(cluster, { marks: new Marks(start), walk: undefined });
    ofShard.set(resource, ofSlice);
  }

  running(shard: ShardName, resource: number, cluster: ClusterName | '' = ''): Sync | undefined {
    return this.#syncs.get(shard)?.get(resource)?.running.get(cluster);
  }

  /** One sync has ended. Returns the `end` of the whole slice if the slice is now synced. */
  ended(resource: number, end: End): End | undefined {
    const { shard } = end.slice;
    const ofSlice = this.#syncs.get(shard)?.get(resource);
    if (ofSlice === undefined) return undefined;
    const { running, ended } = ofSlice;
    running.delete(end.cluster ?? '');
    if (running.size === 0) this.forget(shard, resource);
    if (end.cluster === undefined) {
      ofSlice.awaits = { end, clusters: new Set([...running.keys()].filter((cluster) => !ended.has(cluster))) };
      ended.clear();
    } else {
      if (running.has('')) ended.add(end.cluster);
      ofSlice.awaits?.clusters.delete(end.cluster);
    }
    if (ofSlice.awaits?.clusters.size !== 0) return undefined;
    const whole = ofSlice.awaits.end;
    ofSlice.awaits = undefined;
    return whole;
  }

  forget(shard: ShardName, resource: number): void {
    this.#syncs.get(shard)?.delete(resource);
  }

  forgetRange(range: SliceRange): void {
    if ('shard' in range) this.#syncs.delete(range.shard);
    else for (const ofShard of this.#syncs.values()) ofShard.delete(range.resource);
  }

  /**
   * The logical clusters of a slice whose own syncs are under way. The `end` of each such sync
   * removes that logical cluster's objects.
   */
  clustersUnderWay(shard: ShardName, resource: number): ReadonlySet<string> {
    const clusters = new Set(this.#syncs.get(shard)?.get(resource)?.running.keys());
    clusters.delete('');
    return clusters;
  }

  /** The walk removes nothing outside the buckets, or outside the logical cluster. */
  walk(marks: Marks, slices: readonly NumberedSlice[], { buckets, cluster = '', spared = nothing }: WalkBounds = {}): Walk {
    this.#walks += 1;
    const mayRemove = buckets === undefined ? () => true : inBuckets(buckets);
    return {
      number: this.#walks,
      marks,
      mayRemove: spared.size === 0 ? mayRemove : (key) => !spared.has(key.cluster) && mayRemove(key),
      cluster,
      slices: [...slices],
      after: [cluster, '', ''],
    };
  }

  removal(number: number): Walk | undefined {
    this.#moved.add(number);
    return this.#removals.get(number)?.walk;
  }

  /**
   * `now`: the revision of the last commit. Objects written after `now`, or after `through`, stay.
   */
  beginRemoval(range: SliceRange, { now, through = now }: RemovalStart, slices: readonly NumberedSlice[]): Walk {
    const walk = this.walk(new Marks(Math.min(now, through)), slices);
    this.#removals.set(walk.number, { range, walk });
    this.#moved.add(walk.number);
    return walk;
  }

  endRemoval({ number }: Walk): void {
    this.#removals.delete(number);
  }

  confirm(place: Place, revision: Revision): void {
    for (const marks of this.#marksOf(place)) marks.confirm(revision);
  }

  rewritten(place: Place, from: Revision, to: Revision): void {
    for (const marks of this.#marksOf(place)) marks.rewrite(from, to);
  }

  *#marksOf([resource, shard, cluster]: Place): Iterable<Marks> {
    const running = this.#syncs.get(shard)?.get(resource)?.running;
    for (const sync of [running?.get(''), running?.get(cluster)]) if (sync !== undefined) yield sync.marks;
    for (const { range, walk } of this.#removals.values())
      if ('shard' in range ? range.shard === shard : range.resource === resource) yield walk.marks;
  }
}
