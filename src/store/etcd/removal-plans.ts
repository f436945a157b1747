/**
 * Decides the removal of a shard, or of a type: first its slices count as not synced, and say which server removes them; then their objects go, each only while its
 * slice still says so.
 *
 *   slices/amber/t   removal: A ──▶ deletes of A, that hold while this record is as it was ──▶ removal: none
 *                       └──▶ a sync begins at B: removal: none                            Nothing more of the slice is removed by A.
 *
 * RM1 An object that a sync at another server has found here is not removed: that sync began behind the record, or is void. What is synced at this server is spared by
 *     the marks of the walk (store/syncs.ts), so it goes on.
 * RM2 A drop leaves to another server what that removes, while it runs: each server drops a type until nothing of it is left (intake/declared-types.ts).
 */
import type { Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { SliceRange, Syncs, Walk } from '../syncs.js';
import type { Holders } from './holders.js';
import { decided, unchanged, writeInSteps, type Plan, type PushOf, type Written } from './plan.js';
import type { PublishedState } from './published-state.js';
import type { RecordWrites } from './record-writes.js';
import { cleared, isOvertaken } from '../decide.js';
import { recordsAtOnce } from './records.js';

export type RemovalPlansParts = Readonly<{
  /** The id of this server. */
  server: string;
  published: PublishedState;
  records: RecordWrites;
  holders: Holders;
  underWay: Syncs;
  /** The number of a type. */
  idOf: (resource: Resource) => number;
}>;

export class RemovalPlans {
  readonly #parts: RemovalPlansParts;
  /** What each walk under way removes from. */
  readonly #ranges = new Map<Walk, SliceRange>();

  constructor(parts: RemovalPlansParts) {
    this.#parts = parts;
  }

  clear(push: PushOf<'clear'>): Plan {
    const { published } = this.#parts;
    const { shard, fence, nowMs, through } = push;
    if (isOvertaken(push, published.shards.state(shard))) return unchanged;
    // Without a fence nothing keeps other servers from writing while the records are written.
    const last = through ?? (fence ? undefined : published.revision);
    const begin = (): Plan => this.#begin({ shard }, last);
    return fence ? this.#parts.holders.remove({ shard, nowMs }, begin) : begin();
  }

  drop({ resource, through }: PushOf<'drop'>): Plan {
    return this.#begin({ resource: this.#parts.idOf(resource) }, through);
  }

  /** `undefined`: there is no such walk. */
  resume(walk: number): Plan | undefined {
    const known = this.#parts.underWay.removal(walk);
    return known && this.#remove(known);
  }

  /** The walk does not go on. */
  abandon(walk: Walk): void {
    this.#parts.underWay.endRemoval(walk);
    this.#ranges.delete(walk);
  }

  /** Whether this server removes from the slice: nobody has begun to sync it elsewhere since. */
  mayRemove(slice: Slice): boolean {
    return this.#parts.published.shards.sliceRecord(slice)?.record.removal === this.#parts.server;
  }

  /** Whether another server that runs removes from the slice. */
  #isElsewhere(slice: Slice): boolean {
    const { server, published } = this.#parts;
    const { removal = '' } = published.shards.sliceRecord(slice)?.record ?? {};
    return removal !== server && published.peers.servers.has(removal);
  }

  /** Objects that are written after `through`, or written or synced while the removal is under way, stay: they belong to the time after it. */
  #begin(range: SliceRange, through: Revision | undefined): Plan {
    const { published, records, underWay, server, idOf } = this.#parts;
    const slices = this.#in(range).filter(({ slice }) => 'shard' in range || !this.#isElsewhere(slice));
    underWay.forgetRange(range);
    const written: Written = { compare: [], operations: [] };
    for (const { slice } of slices) {
      if (written.operations.length >= recordsAtOnce) break;
      // One of this server's own may have been synced since its removal began.
      if (!this.mayRemove(slice) || published.shards.sliceRecord(slice)?.record.isVoid !== true)
        records.putFacts(written, slice, cleared(published.shards.facts(slice)), { voids: true, removal: server });
    }
    if (written.operations.length > 0) return writeInSteps(written, () => this.#begin(range, through));
    const holding = slices
      .filter(({ objects }) => objects > 0)
      .map(({ slice }) => ({ id: idOf(slice.resource), slice }))
      .toSorted((a, b) => a.id - b.id || (a.slice.shard < b.slice.shard ? -1 : 1));
    const walk = underWay.beginRemoval(range, { now: published.revision, through }, holding);
    this.#ranges.set(walk, range);
    return this.#remove(walk);
  }

  #remove(walk: Walk): Plan {
    return {
      kind: 'sweep',
      walk,
      by: undefined,
      next: (removed) => {
        if (walk.slices.length > 0) return decided({ kind: 'partial', removed, walk: walk.number });
        const range = this.#ranges.get(walk);
        this.abandon(walk);
        const swept = (): Plan => decided({ kind: 'swept', removed });
        return range === undefined ? swept() : this.#end(range, swept);
      },
    };
  }

  /** No removal of this server is under way in these slices any more, but for those that another walk goes through. */
  #end(range: SliceRange, next: () => Plan): Plan {
    const { published, records } = this.#parts;
    const others = new Set([...this.#ranges.values()].flatMap((other) => this.#in(other).map(({ slice }) => formatSlice(slice))));
    const written: Written = { compare: [], operations: [] };
    for (const { slice } of this.#in(range)) {
      if (written.operations.length >= recordsAtOnce) break;
      if (this.mayRemove(slice) && !others.has(formatSlice(slice)))
        records.putFacts(written, slice, published.shards.facts(slice), { removal: '' });
    }
    return written.operations.length === 0 ? next() : writeInSteps(written, () => this.#end(range, next));
  }

  /** All that hold something, or of which something is recorded. */
  #in(range: SliceRange) {
    const { published, idOf } = this.#parts;
    const { shards } = published;
    if ('shard' in range) return shards.recordedSlices(range.shard);
    return shards.recordedSlices().filter(({ slice }) => idOf(slice.resource) === range.resource);
  }
}
