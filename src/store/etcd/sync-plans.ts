/**
 * Plans syncs: what counts as synced, and what is left to remove. Marks and walks are in the memory
 * of the server that the pusher connected to. If another server's write voids them, this server
 * sees that in the published batch (`follow`).
 */
import type { PushOutcome } from '../../domain/push.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import { assumed, isAssumable, decideEnd, synced, unsynced } from '../decide.js';
import type { Syncs } from '../syncs.js';
import type { Holders } from './holders.js';
import type { IndexedObject } from './object-reader.js';
import { decided, unchanged, write, writeInSteps, type Decision, type Plan, type PushOf, type TransactionParts } from './plan.js';
import type { PublishedBatch, PublishedState } from './published-state.js';
import type { RecordWrites } from './record-writes.js';
import { recordsAtOnce } from './records.js';

export type SyncPlansParts = Readonly<{
  /** The id of this server. */
  server: string;
  published: PublishedState;
  records: RecordWrites;
  holders: Holders;
  syncs: Syncs;
}>;

const nothingSwept: PushOutcome = { kind: 'swept', removed: 0 };
const unbegun: PushOutcome = { kind: 'unbegun' };

export class SyncPlans {
  readonly #parts: SyncPlansParts;
  /** The id that this server gave each type, keyed by the type's text. */
  readonly #ids = new Map<string, number>();

  constructor(parts: SyncPlansParts) {
    this.#parts = parts;
  }

  /** Voids the syncs that changes in the batch invalidate, whichever server wrote the changes. */
  follow({ change, rewrites }: Pick<PublishedBatch, 'change' | 'rewrites'>): void {
    const { syncs } = this.#parts;
    for (const shard of change.voided) syncs.forgetRange({ shard });
    for (const { slice } of change.invalidated) syncs.forget(slice.shard, this.idOf(slice.resource));
    for (const { key, from, to } of rewrites) syncs.rewritten([this.idOf(key.resource), key.shard, key.cluster], from, to);
  }

  keep(held: IndexedObject | undefined): Plan {
    if (held !== undefined) {
      const { resource, shard, cluster } = held.key;
      this.#parts.syncs.confirm([this.idOf(resource), shard, cluster], held.revision);
    }
    return unchanged;
  }

  begin({ slice, cluster, by }: PushOf<'begin'>): Plan {
    const { published, syncs } = this.#parts;
    const begun = (): Plan => {
      syncs.begin(slice.shard, this.idOf(slice.resource), published.revision, cluster);
      return unchanged;
    };
    const { server, records } = this.#parts;
    const facts = published.shards.facts(slice);
    const written: TransactionParts = { compare: records.spokenBy(slice.shard, by), operations: [] };
    const removal = published.shards.sliceRecord(slice)?.record.removal ?? '';
    // Ends another server's removal, because that server must not remove what this sync confirms
    // (removal-plans.ts). Clears `isVoid`, which is about earlier syncs.
    const begins = { begins: true, ...(removal === server ? {} : { removal: '' }) };
    records.putFacts(written, slice, cluster === undefined ? unsynced(facts) : facts, begins);
    return written.operations.length === 0 ? begun() : write(written, begun);
  }

  /**
   * Voids the sync under way at any server: every server sees the changed record
   * (published-shards.ts).
   */
  invalidate({ slice, by }: PushOf<'invalidate'>): Plan {
    const { published, syncs } = this.#parts;
    syncs.forget(slice.shard, this.idOf(slice.resource));
    const written: TransactionParts = { compare: this.#parts.records.spokenBy(slice.shard, by), operations: [] };
    this.#parts.records.putFacts(written, slice, unsynced(published.shards.facts(slice)), { voids: true });
    return write(written);
  }

  /** `resumed`: the walk that an earlier step of this `end` began. */
  end(push: PushOf<'end'>, resumed: number | undefined): Plan {
    const { published, syncs } = this.#parts;
    const { slice, cluster, by } = push;
    const id = this.idOf(slice.resource);
    const sync = syncs.running(slice.shard, id, cluster);
    const verdict = decideEnd(push, { sync, resumed, facts: published.shards.facts(slice) });
    if (verdict === 'synced') return this.#synced(push, nothingSwept);
    if (verdict === 'ended') return this.#ended(push, id, nothingSwept);
    if (verdict === 'unbegun' || sync === undefined) return decided(unbegun);
    const spared = cluster === undefined ? { spared: syncs.clustersUnderWay(slice.shard, id) } : {};
    const walk = (sync.walk ??= syncs.walk(sync.marks, [{ id, slice }], { ...push, ...spared }));
    return {
      kind: 'sweep',
      walk,
      by,
      next: (removed, isFenced) => {
        if (isFenced) return this.#parts.holders.fenced(slice.shard, by) ?? decided(unbegun);
        return walk.slices.length > 0
          ? decided({ kind: 'partial', removed, walk: walk.number })
          : this.#ended(push, id, { kind: 'swept', removed });
      },
    };
  }

  assume(shard: ShardName): Plan {
    const { shards } = this.#parts.published;
    const known = shards.state(shard);
    if (!isAssumable(known)) return unchanged;
    const written: TransactionParts = { compare: [this.#parts.records.compareShard(shard)], operations: [] };
    for (const state of shards.slices(shard)) {
      if (written.operations.length >= recordsAtOnce) break;
      this.#parts.records.putFacts(written, state.slice, assumed(shards.facts(state.slice), known.term));
    }
    return written.operations.length === 0 ? unchanged : writeInSteps(written, () => this.assume(shard));
  }

  /**
   * Ends a sync that has nothing left to remove. store/syncs.ts says when the slice then counts as
   * synced.
   */
  #ended(push: PushOf<'end'>, id: number, decision: Decision): Plan {
    if (this.#parts.syncs.running(push.slice.shard, id, push.cluster) === undefined) return decided(unbegun);
    const whole = this.#parts.syncs.ended(id, push);
    return whole === undefined ? decided(decision) : this.#synced(whole, decision);
  }

  #synced(end: PushOf<'end'>, decision: Decision): Plan {
    const { slice, by } = end;
    const { shards } = this.#parts.published;
    const written: TransactionParts = { compare: this.#parts.records.spokenBy(slice.shard, by), operations: [] };
    this.#parts.records.putFacts(written, slice, synced(end, shards.state(slice.shard)));
    if (written.operations.length === 0) return decided(decision);
    const invalidations = shards.sliceRecord(slice)?.record.invalidations;
    const otherwise = (): Plan => {
      if (shards.sliceRecord(slice)?.record.invalidations !== invalidations) return decided(unbegun);
      return this.#parts.holders.fenced(slice.shard, by) ?? this.#synced(end, decision);
    };
    return { ...write(written, () => decided(decision)), otherwise };
  }

  idOf(resource: Resource): number {
    const text = formatResource(resource);
    const id = this.#ids.get(text) ?? this.#ids.size;
    this.#ids.set(text, id);
    return id;
  }
}
