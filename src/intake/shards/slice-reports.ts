/**
 * The last report of one peer (a pusher, or the other end of a link) on each slice. Also records
 * for each shard whether any slice has its source connected, and since when.
 *
 * Bound: that of NamedSlices; reports on further slices are ignored.
 */
import { NamedSlices } from '../../domain/slices/named-slices.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import type { SliceFreshness, SliceReport } from '../../frames/frame.js';

/**
 * The reports on one shard, by type; never empty. `connected`: the number of slices whose source is
 * connected.
 */
type ShardReports = { readonly slices: Map<string, SliceFreshness>; connected: number; sinceMs: number };

export class SliceReports {
  readonly #shards = new Map<ShardName, ShardReports>();
  readonly #named = new NamedSlices();

  slice({ shard, resource }: Slice): SliceFreshness | undefined {
    return this.#shards.get(shard)?.slices.get(formatResource(resource));
  }

  /**
   * `connected`: whether any slice of the shard has its source connected. Undefined without a
   * report.
   */
  shard(shard: ShardName): Readonly<{ connected: boolean; sinceMs: number }> | undefined {
    const reports = this.#shards.get(shard);
    return reports && { connected: reports.connected > 0, sinceMs: reports.sinceMs };
  }

  /**
   * One report that sums up all slices of a shard. `lagMs` is the largest lag, rounded up to whole
   * seconds.
   */
  together(shard: ShardName): SliceReport {
    const reports = this.#shards.get(shard);
    let [lagMs, whole] = [0, reports !== undefined];
    for (const each of reports?.slices.values() ?? []) {
      lagMs = Math.max(lagMs, each.lagMs);
      whole &&= each.whole;
    }
    return { connected: (reports?.connected ?? 0) > 0, lagMs: Math.ceil(lagMs / 1_000) * 1_000, whole };
  }

  /**
   * The types of the shard's reports and of `held` that are not reported as whole. Undefined if
   * their names together exceed `charactersMax`.
   */
  lackingTypes(shard: ShardName, held: readonly Resource[], charactersMax: number): ReadonlySet<string> | undefined {
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

  *slicesOf(shard: ShardName): Iterable<Slice> {
    for (const { slice } of this.#shards.get(shard)?.slices.values() ?? []) yield slice;
  }

  /** The slices that the peer reports as synced at its own end. */
  get synced(): readonly Slice[] {
    const synced: Slice[] = [];
    for (const { slices } of this.#shards.values()) for (const each of slices.values()) if (each.synced) synced.push(each.slice);
    return synced;
  }

  /** Returns the slices whose report changed. */
  update(freshness: readonly SliceFreshness[], nowMs: number): readonly Slice[] {
    return freshness.flatMap((each) => {
      const before = this.slice(each.slice);
      if (before === undefined && this.#named.isFull) return [];
      this.#replace(each.slice, each, nowMs);
      return isSame(before, each) ? [] : [each.slice];
    });
  }

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
