/**
 * What the caches at the other ends of links tell of the freshness of their shards' slices, and since when each is connected.
 *
 * F1 A link that is down, or has not answered a heartbeat for `answerAgeMsMax`, makes every shard behind it not connected, and changes nothing else.
 * Bound: one entry per side and slice.
 * A shard is connected while one of its slices is; since when is known from what was told, one `note` after the other.
 */
import type { Clock } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { LinkSide } from '../domain/side.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { SliceFreshness } from '../frames/frame.js';
import { answerAgeMsMax } from './heartbeat.js';
import type { Report } from './outgoing-reports.js';

/**
 * `isOpen`: there is a connection. `isUp`: what is told is of now; `sinceMs`: since when it is so. `hasTold`: everything was told once.
 * `isComplete`: every shard is known that anybody knows who is behind it.
 */
export type SidePresence = Readonly<{ isOpen: boolean; isUp: boolean; sinceMs: number; hasTold: boolean; isComplete: boolean }>;

/** One connection of a side, which another one may have taken the place of. */
export type OpenSide = Readonly<{
  /** `askedMs`: when everything that was at the other end is here, where the report answers a heartbeat. Answers the slices that were taken note of. */
  note: (report: Omit<Report, 'heartbeat'>, askedMs?: number) => readonly Slice[];
  /** It is not open any more. */
  down: () => void;
}>;

/** Of one side; what a peer tells of more is passed over. */
const slicesMax = 200_000;

type ShardTold = { connectedSlices: number; sinceMs: number };

type SideTold = {
  isOpen: boolean;
  /** Since when it is open, or not. */
  sinceMs: number;
  /** When everything that was at the other end then is here. */
  asOfMs: number;
  hasTold: boolean;
  isComplete: boolean;
  readonly slices: Map<string, SliceFreshness>;
  readonly shards: Map<ShardName, ShardTold>;
};

export class ToldFreshness {
  readonly #sides = new Map<LinkSide, SideTold>();
  readonly #clock: Pick<Clock, 'now'>;
  readonly #startedMs: number;

  /** `sides`: those that were there before this process started. */
  constructor(clock: Pick<Clock, 'now'>, sides: Iterable<LinkSide> = []) {
    this.#clock = clock;
    this.#startedMs = clock.now();
    for (const side of sides) this.up(side).down();
  }

  /** A link is open. */
  up(side: LinkSide): OpenSide {
    const told: SideTold = {
      isOpen: true,
      sinceMs: this.#clock.now(),
      asOfMs: -Infinity,
      hasTold: false,
      isComplete: false,
      slices: new Map(),
      shards: new Map(),
    };
    this.#sides.set(side, told);
    return {
      note: (report, askedMs) => note(told, report, { askedMs, nowMs: this.#clock.now() }),
      down: () => {
        told.isOpen = false;
        told.sinceMs = this.#clock.now();
      },
    };
  }

  /** Nothing is expected of it any more. */
  forget(side: LinkSide): void {
    this.#sides.delete(side);
  }

  /** Every side that was ever up, here or before this process started. */
  get sides(): Iterable<LinkSide> {
    return this.#sides.keys();
  }

  presence(side: LinkSide): SidePresence {
    const told = this.#sides.get(side);
    if (told === undefined) return { isOpen: false, isUp: false, sinceMs: this.#startedMs, hasTold: false, isComplete: false };
    const { isOpen, sinceMs, asOfMs, hasTold, isComplete } = told;
    const isUp = isOpen && this.#clock.now() - asOfMs <= answerAgeMsMax;
    return {
      isOpen,
      isUp,
      sinceMs: isOpen && !isUp ? Math.max(sinceMs, asOfMs) : sinceMs,
      hasTold,
      isComplete: isUp && hasTold && isComplete,
    };
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
  slice(side: LinkSide, slice: Slice): Omit<SliceFreshness, 'slice'> | undefined {
    const freshness = this.#sides.get(side)?.slices.get(formatSlice(slice));
    return freshness && { ...freshness, connected: freshness.connected && this.presence(side).isUp };
  }

  /** The slices that a side said are whole there. */
  syncedAt(side: LinkSide): readonly Slice[] {
    return [...(this.#sides.get(side)?.slices.values() ?? [])].filter(({ synced }) => synced).map(({ slice }) => slice);
  }
}

function note(
  told: SideTold,
  { freshness, isAll, isComplete }: Omit<Report, 'heartbeat'>,
  { askedMs, nowMs }: Readonly<{ askedMs: number | undefined; nowMs: number }>,
): readonly Slice[] {
  if (isAll) told.hasTold = true;
  told.isComplete = isComplete;
  if (askedMs !== undefined) told.asOfMs = askedMs;
  const noted: Slice[] = [];
  for (const each of freshness) {
    const name = formatSlice(each.slice);
    const before = told.slices.get(name);
    if (told.slices.size >= slicesMax && before === undefined) continue;
    noteShard(told.shards, each, { wasConnected: before?.connected === true, nowMs });
    told.slices.set(name, each);
    noted.push(each.slice);
  }
  return noted;
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
