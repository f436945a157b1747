/**
 * What the caches at the other ends of links report on the freshness of their shards' slices, and since when each is connected.
 *
 * R1 A link that is down, or has not answered a heartbeat for `answerAgeMsMax`, makes every shard behind it not connected, and changes nothing else.
 * Bound: one entry per neighbour and slice.
 * A shard is connected while one of its slices is; since when follows from the reports, one `note` after the other.
 */
import type { Clock } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour } from '../domain/via.js';
import type { Slice } from '../domain/slice.js';
import type { SliceReport } from '../frames/frame.js';
import { SliceReports } from '../intake/slice-reports.js';
import { answerAgeMsMax } from './heartbeat.js';
import type { Report } from './outgoing-reports.js';

/**
 * `isOpen`: there is a connection. `isUp`: its reports are recent; `sinceMs`: since when it is so. `hasReported`: everything was reported once.
 * `isComplete`: it has reported every shard that anybody behind it knows.
 */
export type NeighbourPresence = Readonly<{ isOpen: boolean; isUp: boolean; sinceMs: number; hasReported: boolean; isComplete: boolean }>;

/** One connection of a neighbour; another one may have replaced it. */
export type OpenNeighbour = Readonly<{
  /** `askedMs`: where the report answers a heartbeat, when that was sent: what the other end had then is here. Returns the slices of which something else was reported before. */
  note: (report: Omit<Report, 'heartbeat'>, askedMs?: number) => readonly Slice[];
  /** It is not open any more. */
  down: () => void;
}>;

type NeighbourReports = {
  isOpen: boolean;
  /** Since when it is open, or not. */
  sinceMs: number;
  /** Everything that was at the other end at this time is here. */
  asOfMs: number;
  hasReported: boolean;
  isComplete: boolean;
  readonly slices: SliceReports;
};

export class ReportedFreshness {
  readonly #neighbours = new Map<Neighbour, NeighbourReports>();
  readonly #clock: Pick<Clock, 'now'>;
  readonly #startedMs: number;

  /** `neighbours`: those that were there before this process started. */
  constructor(clock: Pick<Clock, 'now'>, neighbours: Iterable<Neighbour> = []) {
    this.#clock = clock;
    this.#startedMs = clock.now();
    for (const neighbour of neighbours) this.up(neighbour).down();
  }

  /** A link is open. */
  up(neighbour: Neighbour): OpenNeighbour {
    const reported: NeighbourReports = {
      isOpen: true,
      sinceMs: this.#clock.now(),
      asOfMs: -Infinity,
      hasReported: false,
      isComplete: false,
      slices: new SliceReports(),
    };
    this.#neighbours.set(neighbour, reported);
    return {
      note: (report, askedMs) => note(reported, report, { askedMs, nowMs: this.#clock.now() }),
      down: () => {
        reported.isOpen = false;
        reported.sinceMs = this.#clock.now();
      },
    };
  }

  /** The neighbour is forgotten: nothing is expected of it any more. */
  forget(neighbour: Neighbour): void {
    this.#neighbours.delete(neighbour);
  }

  /** Every neighbour that was ever up, here or before this process started. */
  get neighbours(): Iterable<Neighbour> {
    return this.#neighbours.keys();
  }

  presence(neighbour: Neighbour): NeighbourPresence {
    const reported = this.#neighbours.get(neighbour);
    if (reported === undefined) return { isOpen: false, isUp: false, sinceMs: this.#startedMs, hasReported: false, isComplete: false };
    const { isOpen, sinceMs, asOfMs, hasReported, isComplete } = reported;
    const isUp = isOpen && this.#clock.now() - asOfMs <= answerAgeMsMax;
    return {
      isOpen,
      isUp,
      sinceMs: isOpen && !isUp ? Math.max(sinceMs, asOfMs) : sinceMs,
      hasReported,
      isComplete: isUp && hasReported && isComplete,
    };
  }

  /** A shard that was never reported counts as away since the link opened or went down. */
  shard(neighbour: Neighbour, shard: ShardName): Readonly<{ connected: boolean; sinceMs: number }> {
    const { isUp, sinceMs } = this.presence(neighbour);
    const reported = this.#neighbours.get(neighbour)?.slices.shard(shard);
    if (reported === undefined) return { connected: false, sinceMs };
    return isUp || !reported.connected ? reported : { connected: false, sinceMs };
  }

  /** Undefined when it was never reported. */
  slice(neighbour: Neighbour, slice: Slice): SliceReport | undefined {
    const freshness = this.#neighbours.get(neighbour)?.slices.slice(slice);
    return freshness && { ...freshness, connected: freshness.connected && this.presence(neighbour).isUp };
  }

  /** The slices of a shard of which a neighbour has reported something. */
  reportedOf(neighbour: Neighbour, shard: ShardName): Iterable<Slice> {
    return this.#neighbours.get(neighbour)?.slices.of(shard) ?? [];
  }

  /** The slices that a neighbour reported as synced there. */
  syncedAt(neighbour: Neighbour): readonly Slice[] {
    return this.#neighbours.get(neighbour)?.slices.synced ?? [];
  }
}

function note(
  reported: NeighbourReports,
  { freshness, isAll, isComplete }: Omit<Report, 'heartbeat'>,
  { askedMs, nowMs }: Readonly<{ askedMs: number | undefined; nowMs: number }>,
): readonly Slice[] {
  if (isAll) reported.hasReported = true;
  reported.isComplete = isComplete;
  if (askedMs !== undefined) reported.asOfMs = askedMs;
  return reported.slices.note(freshness, nowMs);
}
