/**
 * What one peer, a pusher or the other end of a link, has last reported of each slice, and for each shard whether a slice of it has its source, and
 * since when. Bound: `slicesMax` slices; what a peer reports of further ones is ignored.
 */
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { SliceFreshness } from '../frames/frame.js';

const slicesMax = 200_000;

type ShardReports = { slices: number; connected: number; sinceMs: number };

export class SliceReports {
  readonly #slices = new Map<string, SliceFreshness>();
  readonly #shards = new Map<ShardName, ShardReports>();

  /** Undefined while nothing is reported of it. */
  slice(slice: Slice): SliceFreshness | undefined {
    return this.#slices.get(formatSlice(slice));
  }

  /** Undefined while no slice of it is reported. `connected`: one of them is. */
  shard(shard: ShardName): Readonly<{ connected: boolean; sinceMs: number }> | undefined {
    const reports = this.#shards.get(shard);
    return reports && { connected: reports.connected > 0, sinceMs: reports.sinceMs };
  }

  /** Those that the peer has synced. */
  get synced(): readonly Slice[] {
    return [...this.#slices.values()].filter(({ synced }) => synced).map(({ slice }) => slice);
  }

  /** Returns the slices of which something else was reported before. */
  note(freshness: readonly SliceFreshness[], nowMs: number): readonly Slice[] {
    return freshness.flatMap((each) => {
      const name = formatSlice(each.slice);
      const before = this.#slices.get(name);
      if (before === undefined && this.#slices.size >= slicesMax) return [];
      this.#count(before, each, nowMs);
      this.#slices.set(name, each);
      return isSame(before, each) ? [] : [each.slice];
    });
  }

  /** Nothing is reported of them any more. Returns those of which something was. */
  withdraw(slices: readonly Slice[], nowMs: number): readonly Slice[] {
    return slices.filter((slice) => {
      const name = formatSlice(slice);
      const before = this.#slices.get(name);
      this.#count(before, undefined, nowMs);
      return this.#slices.delete(name);
    });
  }

  #count(before: SliceFreshness | undefined, now: SliceFreshness | undefined, nowMs: number): void {
    const shard = (now ?? before)?.slice.shard;
    if (shard === undefined) return;
    const { slices, connected, sinceMs } = this.#shards.get(shard) ?? { slices: 0, connected: 0, sinceMs: nowMs };
    const next = {
      slices: slices + Number(now !== undefined) - Number(before !== undefined),
      connected: connected + Number(now?.connected === true) - Number(before?.connected === true),
    };
    if (next.slices === 0) this.#shards.delete(shard);
    else this.#shards.set(shard, { ...next, sinceMs: connected > 0 === next.connected > 0 ? sinceMs : nowMs });
  }
}

function isSame(one: SliceFreshness | undefined, other: SliceFreshness): boolean {
  return one?.connected === other.connected && one.synced === other.synced && one.lagMs === other.lagMs && one.whole === other.whole;
}
