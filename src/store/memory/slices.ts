/**
 * What each slice holds and how far it is synced, in memory. It counts exactly its objects, the bytes of their bodies and their digests;
 * a slice that holds nothing and was never synced is forgotten. Bound: one entry per shard and type, and its objects.
 */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { addDigest, emptyDigest, formatDigest, subtractDigest, type Digest } from '../../domain/digest.js';
import type { Key } from '../../domain/key.js';
import { isForgotten, type SliceState } from '../../domain/push.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import type { MemoryRow } from './log.js';

export type SliceFacts = Pick<SliceState, 'syncedTerm' | 'everSynced' | 'filterHash' | 'cameOver'>;

type Entry = {
  readonly slice: Slice;
  /** The live objects, by their place in the slice. */
  readonly objects: Map<string, MemoryRow>;
  bytes: number;
  digest: Digest;
  changedMs: number;
  facts: SliceFacts;
};

export type MemorySlice = Readonly<Pick<Entry, 'slice' | 'facts' | 'digest'> & { objects: ReadonlyMap<string, MemoryRow> }>;

const unsynced: SliceFacts = { syncedTerm: 0, everSynced: false, filterHash: '', cameOver: '' };

export class MemorySlices {
  readonly #byShard = new Map<ShardName, Map<string, Entry>>();
  readonly #byResource = new Map<string, Map<ShardName, Entry>>();
  /** What the commit under way has touched. */
  readonly #touched = new Set<Entry>();

  constructor(other?: MemorySlices) {
    for (const entries of other === undefined ? [] : other.#byShard.values())
      for (const entry of entries.values()) this.#add({ ...entry, objects: new Map(entry.objects) });
  }

  held(key: Key): MemoryRow | undefined {
    return this.of(key)?.objects.get(placeOf(key));
  }

  of({ shard, resource }: Slice): MemorySlice | undefined {
    return this.#byShard.get(shard)?.get(formatResource(resource));
  }

  ofShard(shard: ShardName): readonly MemorySlice[] {
    return [...(this.#byShard.get(shard)?.values() ?? [])];
  }

  /** Of each shard that has it. */
  ofResource(resource: Resource): readonly MemorySlice[] {
    return [...(this.#byResource.get(formatResource(resource))?.values() ?? [])];
  }

  all(): readonly MemorySlice[] {
    return [...this.#byShard.values()].flatMap((entries) => [...entries.values()]);
  }

  /** The live objects with the same key on other shards. */
  *namesakes(key: Key): Iterable<MemoryRow> {
    const place = placeOf(key);
    for (const { slice, objects } of this.#byResource.get(formatResource(key.resource))?.values() ?? []) {
      const row = slice.shard === key.shard ? undefined : objects.get(place);
      if (row !== undefined) yield row;
    }
  }

  /** The key of `row` now holds that, or nothing after a delete; `held` is what it held before. */
  change(row: MemoryRow, held: MemoryRow | undefined, nowMs: number): void {
    const entry = this.#touch(row.key);
    const place = placeOf(row.key);
    if (row.body === undefined) entry.objects.delete(place);
    else entry.objects.set(place, row);
    entry.bytes += (row.body?.bytes.length ?? 0) - (held?.body?.bytes.length ?? 0);
    if (held !== undefined) entry.digest = subtractDigest(entry.digest, held.digest);
    if (row.body !== undefined) entry.digest = addDigest(entry.digest, row.digest);
    entry.changedMs = nowMs;
  }

  /** Changes how far a slice is synced. It makes no entry for an unknown slice that becomes unsynced. */
  sync(slice: Slice, change: Partial<SliceFacts>): void {
    const before = this.of(slice)?.facts ?? unsynced;
    const facts = { ...before, ...change };
    if (isDeepStrictEqual(facts, before)) return;
    this.#touch(slice).facts = facts;
  }

  /** The slices touched since the last call; drops those that hold nothing and were never synced. */
  changed(): readonly SliceState[] {
    const changed = [...this.#touched].map(stateOf);
    for (const entry of this.#touched) {
      if (!saysNothing(entry)) continue;
      const { slice } = entry;
      this.#byShard.get(slice.shard)?.delete(formatResource(slice.resource));
      this.#byResource.get(formatResource(slice.resource))?.delete(slice.shard);
    }
    this.#touched.clear();
    return changed;
  }

  states(): readonly SliceState[] {
    return [...this.#byShard.values()].flatMap((entries) => [...entries.values()].map(stateOf));
  }

  #touch({ shard, resource }: Slice): Entry {
    const known = this.#byShard.get(shard)?.get(formatResource(resource));
    const entry =
      known ?? this.#add({ slice: { shard, resource }, objects: new Map(), bytes: 0, digest: emptyDigest, changedMs: 0, facts: unsynced });
    this.#touched.add(entry);
    return entry;
  }

  #add(entry: Entry): Entry {
    const { shard, resource } = entry.slice;
    const text = formatResource(resource);
    const ofShard = this.#byShard.get(shard) ?? new Map<string, Entry>();
    const ofResource = this.#byResource.get(text) ?? new Map<ShardName, Entry>();
    this.#byShard.set(shard, ofShard.set(text, entry));
    this.#byResource.set(text, ofResource.set(shard, entry));
    return entry;
  }
}

/** It holds nothing and was never synced. */
export function saysNothing({ objects, facts }: MemorySlice): boolean {
  return isForgotten({ ...facts, objects: objects.size });
}

function placeOf({ cluster, namespace, name }: Key): string {
  return `${cluster}|${namespace}/${name}`;
}

function stateOf({ slice, objects, bytes, digest, changedMs, facts }: Entry): SliceState {
  assert(bytes >= 0, 'a slice cannot hold fewer than 0 bytes');
  return { slice, objects: objects.size, bytes, digest: formatDigest(digest), changedMs, ...facts };
}
