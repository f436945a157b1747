/**
 * What one peer, a pusher or the other end of a link, has last reported of each slice, and for each shard whether a slice of it has its source, and
 * since when. Bound: that of NamedSlices; what a peer reports of further ones is ignored.
 */
import { NamedSlices } from '../domain/named-slices.js';
import { formatResource, type Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { SliceFreshness, SliceReport } from '../frames/frame.js';

/** Of one shard, by type; never empty. `connected`: how many of them have their source. */
type ShardReports = { readonly slices: Map<string, SliceFreshness>; connected: number; sinceMs: number };

export class SliceReports {
  readonly #shards = new Map<ShardName, ShardReports>();
  readonly #named = new NamedSlices();

  /** Undefined while nothing is reported of it. */
  slice({ shard, resource }: Slice): SliceFreshness | undefined {
    return this.#shards.get(shard)?.slices.get(formatResource(resource));
  }

  /** Undefined while no slice of it is reported. `connected`: one of them is. */
  shard(shard: ShardName): Readonly<{ connected: boolean; sinceMs: number }> | undefined {
    const reports = this.#shards.get(shard);
    return reports && { connected: reports.connected > 0, sinceMs: reports.sinceMs };
  }

  /** What is reported of all slices of a shard; `lagMs` is that of the one most behind, in whole seconds. */
  together(shard: ShardName): SliceReport {
    const reports = this.#shards.get(shard);
    let [lagMs, whole] = [0, reports !== undefined];
    for (const each of reports?.slices.values() ?? []) {
      lagMs = Math.max(lagMs, each.lagMs);
      whole &&= each.whole;
    }
    return { connected: (reports?.connected ?? 0) > 0, lagMs: Math.ceil(lagMs / 1_000) * 1_000, whole };
  }

  /** The types of a shard that are not whole, of those that are reported and of `held`. Undefined where they have more characters together. */
  lacks(shard: ShardName, held: readonly Resource[], charactersMax: number): ReadonlySet<string> | undefined {
    const slices = this.#shards.get(shard)?.slices ?? new Map<string, SliceFreshness>();
    const lacks = new Set<string>();
    let left = charactersMax;
    for (const type of new Set([...slices.keys(), ...held.map(formatResource)])) {
      if (slices.get(type)?.whole === true) continue;
      left -= type.length;
      if (left < 0) return undefined;
      lacks.add(type);
    }
    return lacks;
  }

  /** Those of a shard of which something is reported. */
  *of(shard: ShardName): Iterable<Slice> {
    for (const { slice } of this.#shards.get(shard)?.slices.values() ?? []) yield slice;
  }

  /** Those that the peer has synced. */
  get synced(): readonly Slice[] {
    const synced: Slice[] = [];
    for (const { slices } of this.#shards.values()) for (const each of slices.values()) if (each.synced) synced.push(each.slice);
    return synced;
  }

  /** Returns the slices of which something else was reported before. */
  note(freshness: readonly SliceFreshness[], nowMs: number): readonly Slice[] {
    return freshness.flatMap((each) => {
      const before = this.slice(each.slice);
      if (before === undefined && this.#named.isFull) return [];
      this.#replace(each.slice, each, nowMs);
      return isSame(before, each) ? [] : [each.slice];
    });
  }

  /** Nothing is reported of them any more. Returns those of which something was. */
  withdraw(slices: readonly Slice[], nowMs: number): readonly Slice[] {
    return slices.filter((slice) => {
      const isReported = this.slice(slice) !== undefined;
      if (isReported) this.#replace(slice, undefined, nowMs);
      return isReported;
    });
  }

  #replace({ shard, resource }: Slice, now: SliceFreshness | undefined, nowMs: number): void {
    const reports = this.#shards.get(shard) ?? { slices: new Map<string, SliceFreshness>(), connected: 0, sinceMs: nowMs };
    const type = formatResource(resource);
    const before = reports.slices.get(type);
    const wasConnected = reports.connected > 0;
    if (before === undefined && now !== undefined) this.#named.add(type);
    if (before !== undefined && now === undefined) this.#named.delete(type);
    reports.connected += Number(now?.connected === true) - Number(before?.connected === true);
    if (reports.connected > 0 !== wasConnected) reports.sinceMs = nowMs;
    if (now === undefined) reports.slices.delete(type);
    else reports.slices.set(type, now);
    if (reports.slices.size === 0) this.#shards.delete(shard);
    else this.#shards.set(shard, reports);
  }
}

function isSame(one: SliceFreshness | undefined, other: SliceFreshness): boolean {
  return one?.connected === other.connected && one.synced === other.synced && one.lagMs === other.lagMs && one.whole === other.whole;
}
