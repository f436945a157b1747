/**
 * The published state of shards, slices and links: their records, and the size and digest of
 * slices, computed from the objects. A change of a shard or link does not rewrite the records of
 * its slices. Readers compare revisions instead:
 *
 *   shards/amber   9  its via since 9     slices/amber/t   7  synced     7 < 9: it is not synced
 *   links/parent  12  stale since 12      slices/amber/u  11  current    11 < 12: it is not current
 *
 * Bound: an entry per shard, per slice and per link.
 */
import assert from 'node:assert/strict';
import { entryOf } from '../../domain/base/entry-of.js';
import { unknownShard, type ShardState } from '../../domain/claim.js';
import { addDigest, emptyDigest, formatDigest, subtractDigest, type Digest } from '../../domain/slices/digest.js';
import { isForgotten, leftLink, type LinkState, type SliceState } from '../../domain/push.js';
import { formatResource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import { childOf, type Neighbour } from '../../domain/via.js';
import type { IndexedObject } from './object-reader.js';
import { neverSynced, stale, unsynced, type SliceFacts } from '../decide.js';
import type { LinkRecord, ShardRecord, SliceRecord } from './records.js';

/** A record, and the revision of its last change. */
export type Versioned<Record> = Readonly<{ revision: Revision; record: Record }>;

export type ShardsChange = Readonly<{
  shards: readonly ShardState[];
  slices: readonly SliceState[];
  links: readonly LinkState[];
  /** Shards whose syncs under way are void. */
  voided: ReadonlySet<ShardName>;
  /** Slices whose syncs under way are void, and the servers that invalidated them. */
  invalidated: readonly Readonly<{ slice: Slice; by: string }>[];
}>;

type Entry = {
  readonly slice: Slice;
  objects: number;
  bytes: number;
  digest: Digest;
  changedMs: number;
  stored: Versioned<SliceRecord> | undefined;
};

const nothing = { objects: 0, bytes: 0, digest: emptyDigest, changedMs: 0, stored: undefined };

export class PublishedShards {
  readonly #shards = new Map<ShardName, Versioned<ShardRecord>>();
  readonly #links = new Map<Neighbour, Versioned<LinkRecord>>();
  readonly #slices = new Map<ShardName, Map<string, Entry>>();
  #changedShards = new Set<ShardName>();
  #changedSlices = new Set<Entry>();
  #changedLinks = new Set<Neighbour>();
  #voided = new Set<ShardName>();
  #invalidated: { slice: Slice; by: string }[] = [];

  shard(shard: ShardName): Versioned<ShardRecord> | undefined {
    return this.#shards.get(shard);
  }

  state(shard: ShardName): ShardState | undefined {
    const found = this.#shards.get(shard);
    return found && stateOf(shard, found.record);
  }

  /** Sorted by name. */
  states(): readonly ShardState[] {
    return [...this.#shards].map(([shard, { record }]) => stateOf(shard, record)).toSorted((a, b) => (a.shard < b.shard ? -1 : 1));
  }

  link(neighbour: Neighbour): Versioned<LinkRecord> | undefined {
    return this.#links.get(neighbour);
  }

  get linkCount(): number {
    return this.#links.size;
  }

  /** The name of the child that has this cache id. */
  nameOfChild(cacheId: string): string | undefined {
    for (const [neighbour, { record }] of this.#links) if (record.cacheId === cacheId && neighbour !== 'parent') return childOf(neighbour);
    return undefined;
  }

  links(): readonly LinkState[] {
    return [...this.#links.keys()].map((neighbour) => this.#linkState(neighbour));
  }

  /** Slices that hold objects or were ever synced, of one shard or of all. */
  slices(shard?: ShardName): readonly SliceState[] {
    return this.recordedSlices(shard).filter((state) => !isForgotten(state));
  }

  /** Slices that hold objects or have a record, of one shard or of all. */
  recordedSlices(shard?: ShardName): readonly SliceState[] {
    const entries = shard === undefined ? [...this.#slices.values()] : [this.#slices.get(shard) ?? new Map<string, Entry>()];
    return entries.flatMap((ofShard) => [...ofShard.values()].map((entry) => this.#stateOf(entry)));
  }

  digestOf(slice: Slice): string {
    return formatDigest(this.#entry(slice)?.digest ?? emptyDigest);
  }

  changedMs(slice: Slice): number {
    return this.#entry(slice)?.changedMs ?? 0;
  }

  /** The stored record; `facts` also considers the records of the shard and the link. */
  sliceRecord(slice: Slice): Versioned<SliceRecord> | undefined {
    return this.#entry(slice)?.stored;
  }

  facts(slice: Slice): SliceFacts {
    const entry = this.#entry(slice);
    return entry === undefined ? neverSynced : this.#factsOf(entry);
  }

  shardRecorded(shard: ShardName, record: ShardRecord | undefined, revision: Revision): void {
    const before = this.#shards.get(shard)?.record;
    if (record === undefined) this.#shards.delete(shard);
    else this.#shards.set(shard, { revision, record });
    this.#changedShards.add(shard);
    if (before?.via === record?.via && before?.session === record?.session) return;
    this.#voided.add(shard);
    if (before?.via !== record?.via) this.#touchAll(shard);
  }

  sliceRecorded(slice: Slice, record: SliceRecord | undefined, revision: Revision): void {
    const entry = this.#touch(slice);
    const before = entry.stored?.record.invalidations ?? 0;
    entry.stored = record && { revision, record };
    entry.changedMs = Math.max(entry.changedMs, record?.changedMs ?? 0);
    if (record !== undefined && record.invalidations > before) this.#invalidated.push({ slice: entry.slice, by: record.invalidatedBy });
  }

  linkRecorded(neighbour: Neighbour, record: LinkRecord | undefined, revision: Revision): void {
    const before = this.#links.get(neighbour);
    this.#changedLinks.add(neighbour);
    if (record === undefined) this.#links.delete(neighbour);
    else this.#links.set(neighbour, { revision, record });
    if (before !== undefined && record !== undefined && staleSinceOf(before) === staleSinceOf({ revision, record })) return;
    for (const [shard, state] of this.#shards) {
      if (state.record.via !== neighbour) continue;
      this.#touchAll(shard);
      this.#voided.add(shard);
    }
  }

  /** `nowMs`: 0 if the time is unknown. */
  objectChanged(slice: Slice, before: IndexedObject | undefined, after: IndexedObject | undefined, nowMs: number): void {
    const entry = this.#touch(slice);
    entry.objects += Number(after !== undefined) - Number(before !== undefined);
    entry.bytes += (after?.bytes ?? 0) - (before?.bytes ?? 0);
    if (before !== undefined) entry.digest = subtractDigest(entry.digest, before.digest);
    if (after !== undefined) entry.digest = addDigest(entry.digest, after.digest);
    entry.changedMs = Math.max(entry.changedMs, nowMs);
    assert(entry.objects >= 0 && entry.bytes >= 0, 'no slice holds less than nothing');
  }

  /** The changes since the last call. Forgets slices without objects and without a record. */
  takeChange(): ShardsChange {
    const change: ShardsChange = {
      shards: [...this.#changedShards].map((shard) => this.state(shard) ?? unknownShard(shard)),
      slices: [...this.#changedSlices].map((entry) => this.#stateOf(entry)),
      links: [...this.#changedLinks].map((neighbour) => this.#linkState(neighbour)),
      voided: this.#voided,
      invalidated: this.#invalidated,
    };
    for (const entry of this.#changedSlices)
      if (entry.stored === undefined && entry.objects === 0)
        this.#slices.get(entry.slice.shard)?.delete(formatResource(entry.slice.resource));
    this.#changedShards = new Set();
    this.#changedSlices = new Set();
    this.#changedLinks = new Set();
    this.#voided = new Set();
    this.#invalidated = [];
    return change;
  }

  #linkState(neighbour: Neighbour): LinkState {
    const record = this.#links.get(neighbour)?.record;
    return record === undefined ? leftLink(neighbour) : { neighbour, cacheId: record.cacheId, position: record.position };
  }

  #entry({ shard, resource }: Slice): Entry | undefined {
    return this.#slices.get(shard)?.get(formatResource(resource));
  }

  #touch({ shard, resource }: Slice): Entry {
    const ofShard = entryOf(this.#slices, shard, () => new Map<string, Entry>());
    const entry = entryOf(ofShard, formatResource(resource), (): Entry => ({ slice: { shard, resource }, ...nothing }));
    this.#changedSlices.add(entry);
    return entry;
  }

  #touchAll(shard: ShardName): void {
    for (const entry of this.#slices.get(shard)?.values() ?? []) this.#changedSlices.add(entry);
  }

  #stateOf(entry: Entry): SliceState {
    const { slice, objects, bytes, digest, changedMs } = entry;
    return { slice, objects, bytes, digest: formatDigest(digest), changedMs, ...this.#factsOf(entry) };
  }

  #factsOf({ slice, stored }: Entry): SliceFacts {
    if (stored === undefined) return neverSynced;
    const { syncedTerm, everSynced, filterHash, cameOver } = stored.record;
    const recorded = { syncedTerm, everSynced, filterHash, cameOver };
    const shard = this.#shards.get(slice.shard);
    if (shard === undefined || stored.revision < viaSinceOf(shard)) return unsynced(recorded);
    const { via } = shard.record;
    const link = via === undefined || via === 'local' ? undefined : this.#links.get(via);
    const isStale = link !== undefined && stored.revision < staleSinceOf(link);
    return isStale ? stale(recorded) : recorded;
  }
}

export function viaSinceOf({ revision, record }: Versioned<ShardRecord>): Revision {
  return record.viaSince === 0 ? revision : record.viaSince;
}

/** Slices that came over the link are stale if their records are below this revision. */
export function staleSinceOf({ revision, record }: Versioned<LinkRecord>): Revision {
  return record.staleSince === 0 ? revision : record.staleSince;
}

function stateOf(shard: ShardName, { term, removed, origin, process, via, plain }: ShardRecord): ShardState {
  return { shard, term, removed, origin, process, via, plain };
}
