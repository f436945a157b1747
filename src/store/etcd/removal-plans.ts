/**
 * Plans the removal of a shard or of a type. First, the records of its slices get the state "not
 * synced" and the name of the server that removes. Then that server deletes the objects. etcd
 * applies each delete only while the record of its slice is unchanged.
 *
 *   slices/amber/t   removal: A ──▶ deletes by A, each compares this record ──▶ removal: none
 *                       └──▶ a sync begins at B: removal: none        A deletes nothing more here.
 *
 * RM1 A removal deletes no object that a valid sync at another server has confirmed. If that sync
 *     began after the record was written, its `begin` ended the removal. Otherwise the record voids
 *     the sync. A sync at this server does not end the removal, because the walk's marks spare the
 *     objects that the sync confirms (store/syncs.ts).
 * RM2 Every server drops a type until nothing of the type is left
 *     (intake/shards/declared-types.ts). So a drop skips each slice from which another running
 *     server removes.
 */
import type { Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { SliceRange, Walk } from '../syncs.js';
import { decided, unchanged, writeInSteps, type Plan, type PushOf, type TransactionParts } from './plan.js';
import { cleared, isOvertaken } from '../decide.js';
import { recordsAtOnce } from './records.js';
import type { SyncPlansParts } from './sync-plans.js';

export type RemovalPlansParts = SyncPlansParts & Readonly<{ idOf: (resource: Resource) => number }>;

export class RemovalPlans {
  readonly #parts: RemovalPlansParts;
  /** The slices of each walk under way. */
  readonly #ranges = new Map<Walk, SliceRange>();

  constructor(parts: RemovalPlansParts) {
    this.#parts = parts;
  }

  clear(push: PushOf<'clear'>): Plan {
    const { published } = this.#parts;
    const { shard, fence, nowMs, through } = push;
    if (isOvertaken(push, published.shards.state(shard))) return unchanged;
    // Without a fence, other servers may write objects while the records are written; these objects
    // stay.
    const last = through ?? (fence ? undefined : published.revision);
    const begin = (): Plan => this.#begin({ shard }, last);
    return fence ? this.#parts.holders.remove({ shard, nowMs }, begin) : begin();
  }

  drop({ resource, through }: PushOf<'drop'>): Plan {
    return this.#begin({ resource: this.#parts.idOf(resource) }, through);
  }

  /** Undefined if there is no such walk. */
  resume(walk: number): Plan | undefined {
    const known = this.#parts.syncs.removal(walk);
    return known && this.#remove(known);
  }

  /** Forgets a walk that is done or whose writes failed. */
  abandon(walk: Walk): void {
    this.#parts.syncs.endRemoval(walk);
    this.#ranges.delete(walk);
  }

  /** Whether this server removes from the slice, and no sync has begun elsewhere since. */
  mayRemove(slice: Slice): boolean {
    return this.#parts.published.shards.sliceRecord(slice)?.record.removal === this.#parts.server;
  }

  /** Whether another running server removes from the slice. */
  #isRemovedElsewhere(slice: Slice): boolean {
    const { server, published } = this.#parts;
    const { removal = '' } = published.shards.sliceRecord(slice)?.record ?? {};
    return removal !== server && published.peers.servers.has(removal);
  }

  /**
   * Objects written after `through` stay, and so do objects written or synced during the removal.
   */
  #begin(range: SliceRange, through: Revision | undefined): Plan {
    const { published, records, syncs, server, idOf } = this.#parts;
    const slices = this.#in(range).filter(({ slice }) => 'shard' in range || !this.#isRemovedElsewhere(slice));
    syncs.forgetRange(range);
    const written: TransactionParts = { compare: [], operations: [] };
    for (const { slice } of slices) {
      if (written.operations.length >= recordsAtOnce) break;
      // This also voids a sync that began here after this server's removal of the slice began.
      if (!this.mayRemove(slice) || published.shards.sliceRecord(slice)?.record.isVoid !== true)
        records.putFacts(written, slice, cleared(published.shards.facts(slice)), { voids: true, removal: server });
    }
    if (written.operations.length > 0) return writeInSteps(written, () => this.#begin(range, through));
    const holding = slices
      .filter(({ objects }) => objects > 0)
      .map(({ slice }) => ({ id: idOf(slice.resource), slice }))
      .toSorted((a, b) => a.id - b.id || (a.slice.shard < b.slice.shard ? -1 : 1));
    const walk = syncs.beginRemoval(range, { now: published.revision, through }, holding);
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

  /** Ends this server's removal in the slices of the range, except slices of its other walks. */
  #end(range: SliceRange, next: () => Plan): Plan {
    const { published, records } = this.#parts;
    const others = new Set([...this.#ranges.values()].flatMap((other) => this.#in(other).map(({ slice }) => formatSlice(slice))));
    const written: TransactionParts = { compare: [], operations: [] };
    for (const { slice } of this.#in(range)) {
      if (written.operations.length >= recordsAtOnce) break;
      if (this.mayRemove(slice) && !others.has(formatSlice(slice)))
        records.putFacts(written, slice, published.shards.facts(slice), { removal: '' });
    }
    return written.operations.length === 0 ? next() : writeInSteps(written, () => this.#end(range, next));
  }

  /** The slices of the range that hold objects or have a record. */
  #in(range: SliceRange) {
    const { published, idOf } = this.#parts;
    const { shards } = published;
    if ('shard' in range) return shards.recordedSlices(range.shard);
    return shards.recordedSlices().filter(({ slice }) => idOf(slice.resource) === range.resource);
  }
}
