/**
 * What the caches at the other ends of links tell of the freshness of their shards' slices, and since when each is connected.
 *
 * F1 A link that is down, or silent for longer than one that is up can be, makes every shard behind it not connected, and changes nothing else.
 * Bound: one entry per side and slice.
 * A shard is connected while one of its slices is; since when is known from what was told, one `note` after the other.
 */
import type { ShardName } from '../domain/shard.js';
import type { LinkSide } from '../domain/side.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { SliceFreshness } from '../frames/frame.js';

/** `sinceMs`: since when it is so. `hasTold`: everything was told once. */
export type SidePresence = Readonly<{ isUp: boolean; sinceMs: number; hasTold: boolean }>;

/** Of one side; what a peer tells of more is passed over. */
const slicesMax = 200_000;

type ShardTold = { connectedSlices: number; sinceMs: number };

type SideTold = {
  isUp: boolean;
  sinceMs: number;
  hasTold: boolean;
  readonly connection: Pick<FrameConnection, 'silentSinceMs'>;
  readonly slices: Map<string, SliceFreshness>;
  readonly shards: Map<ShardName, ShardTold>;
};

export class ToldFreshness {
  readonly #sides = new Map<LinkSide, SideTold>();
  readonly #startedMs: number;

  constructor(nowMs: number) {
    this.#startedMs = nowMs;
  }

  /** A link is open, and silent as its connection says; what is given back says that it is not any more, unless another one has taken its place. */
  up(side: LinkSide, nowMs: number, connection: Pick<FrameConnection, 'silentSinceMs'>): (nowMs: number) => void {
    const told: SideTold = { isUp: true, sinceMs: nowMs, hasTold: false, connection, slices: new Map(), shards: new Map() };
    this.#sides.set(side, told);
    return (endedMs) => {
      told.isUp = false;
      told.sinceMs = endedMs;
    };
  }

  /** Every side that was ever up. */
  get sides(): Iterable<LinkSide> {
    return this.#sides.keys();
  }

  /** Answers the slices that were taken note of. */
  note(side: LinkSide, freshness: readonly SliceFreshness[], nowMs: number): readonly Slice[] {
    const told = this.#sides.get(side);
    if (told === undefined) return [];
    if (freshness.length === 0) told.hasTold = true;
    const noted: Slice[] = [];
    for (const each of freshness) {
      const name = formatSlice(each.slice);
      if (told.slices.size >= slicesMax && !told.slices.has(name)) continue;
      noteShard(told.shards, each, { wasConnected: told.slices.get(name)?.connected === true, nowMs });
      told.slices.set(name, each);
      noted.push(each.slice);
    }
    return noted;
  }

  presence(side: LinkSide): SidePresence {
    const told = this.#sides.get(side);
    if (told === undefined) return { isUp: false, sinceMs: this.#startedMs, hasTold: false };
    const { isUp, sinceMs, hasTold } = told;
    const silentMs = isUp ? told.connection.silentSinceMs() : undefined;
    return { isUp: isUp && silentMs === undefined, sinceMs: silentMs ?? sinceMs, hasTold };
  }

  /** A shard of which nothing was told is away for as long as the link is open or down. */
  shard(side: LinkSide, shard: ShardName): Readonly<{ connected: boolean; sinceMs: number }> {
    const { isUp, sinceMs } = this.presence(side);
    const told = this.#sides.get(side)?.shards.get(shard);
    if (told === undefined) return { connected: false, sinceMs };
    const wasConnected = told.connectedSlices > 0;
    return isUp || !wasConnected ? { connected: wasConnected, sinceMs: told.sinceMs } : { connected: false, sinceMs };
  }

  /** Undefined when nothing was told of it. */
  slice(side: LinkSide, slice: Slice): Readonly<{ connected: boolean; lagMs: number; synced: boolean }> | undefined {
    const freshness = this.#sides.get(side)?.slices.get(formatSlice(slice));
    return freshness && { ...freshness, connected: freshness.connected && this.presence(side).isUp };
  }

  /** The slices that a side said are whole there. */
  syncedAt(side: LinkSide): readonly Slice[] {
    return [...(this.#sides.get(side)?.slices.values() ?? [])].filter(({ synced }) => synced).map(({ slice }) => slice);
  }
}

function noteShard(
  shards: Map<ShardName, ShardTold>,
  { slice: { shard }, connected }: SliceFreshness,
  { wasConnected, nowMs }: Readonly<{ wasConnected: boolean; nowMs: number }>,
): void {
  const told = shards.get(shard) ?? { connectedSlices: 0, sinceMs: nowMs };
  shards.set(shard, told);
  const before = told.connectedSlices;
  told.connectedSlices += Number(connected) - Number(wasConnected);
  if (before > 0 !== told.connectedSlices > 0) told.sinceMs = nowMs;
}
