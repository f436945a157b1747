/**
 * The freshness of slices as the other ends of links report it, and since when each end is
 * connected.
 *
 * R1 If a link is down, or has not answered a heartbeat for `answerAgeMsMax`, every shard behind it
 *    counts as not connected. Nothing else changes.
 * R2 A shard whose origin no link reaches also counts as not connected, whatever was reported.
 *
 * A shard is connected while one of its slices is. The shard's `sinceMs` is the time of the report
 * that connected or disconnected it last.
 *
 * Bound: one entry per neighbour and slice.
 */
import type { Clock } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour } from '../domain/via.js';
import type { Slice } from '../domain/slice.js';
import type { SliceReport } from '../frames/frame.js';
import { SliceReports } from '../intake/shards/slice-reports.js';
import { answerAgeMsMax } from './links/heartbeat.js';
import type { Report } from './links/outgoing-reports.js';
import type { Routes } from './routes.js';

/**
 * `isOpen`: a connection is open. `isUp`: the connection is open, and its reports are recent.
 * `sinceMs`: since when the neighbour is in this state. `hasReported`: the neighbour has reported
 * everything once. `isComplete`: the neighbour is up, and has reported every shard that any cache
 * behind it knows.
 */
export type NeighbourPresence = Readonly<{ isOpen: boolean; isUp: boolean; sinceMs: number; hasReported: boolean; isComplete: boolean }>;

/** One connection of a neighbour. A later connection may have replaced it. */
export type OpenNeighbour = Readonly<{
  /**
   * `askedMs`: when this end sent the heartbeat that the report answers, if any. Everything that
   * the other end held then is here. Returns the slices whose report has changed.
   */
  record: (report: Omit<Report, 'heartbeat'>, askedMs?: number) => readonly Slice[];
  down: () => void;
}>;

type NeighbourReports = {
  isOpen: boolean;
  /** Since when the connection is open, or closed. */
  sinceMs: number;
  /** Everything that the other end held at this time is here. */
  asOfMs: number;
  hasReported: boolean;
  isComplete: boolean;
  readonly slices: SliceReports;
};

export class ReportedFreshness {
  readonly #neighbours = new Map<Neighbour, NeighbourReports>();
  readonly #clock: Pick<Clock, 'now'>;
  readonly #startedMs: number;
  readonly #unreachedMs: Routes['unreachedMs'];

  /** `neighbours`: those that this cache had before this process started. */
  constructor(clock: Pick<Clock, 'now'>, neighbours: Iterable<Neighbour> = [], unreachedMs: Routes['unreachedMs'] = () => undefined) {
    this.#clock = clock;
    this.#unreachedMs = unreachedMs;
    this.#startedMs = clock.now();
    for (const neighbour of neighbours) this.up(neighbour).down();
  }

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
      record: ({ freshness, isAll, isComplete }, askedMs) => {
        if (isAll) reported.hasReported = true;
        reported.isComplete = isComplete;
        if (askedMs !== undefined) reported.asOfMs = askedMs;
        return reported.slices.update(freshness, this.#clock.now());
      },
      down: () => {
        reported.isOpen = false;
        reported.sinceMs = this.#clock.now();
      },
    };
  }

  /** An operator forgets the neighbour, so this cache expects no report from it any more. */
  forget(neighbour: Neighbour): void {
    this.#neighbours.delete(neighbour);
  }

  /** Every neighbour that this cache ever had, also before this process started. */
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

  /** A shard that was never reported counts as not connected since the link opened or closed. */
  shard(neighbour: Neighbour, shard: ShardName): Readonly<{ connected: boolean; sinceMs: number }> {
    const unreachedMs = this.#unreachedMs(shard);
    if (unreachedMs !== undefined) return { connected: false, sinceMs: unreachedMs };
    const { isUp, sinceMs } = this.presence(neighbour);
    const reported = this.#neighbours.get(neighbour)?.slices.shard(shard);
    if (reported === undefined) return { connected: false, sinceMs };
    return isUp || !reported.connected ? reported : { connected: false, sinceMs };
  }

  /** Undefined if the slice was never reported. */
  slice(neighbour: Neighbour, slice: Slice): SliceReport | undefined {
    const freshness = this.#neighbours.get(neighbour)?.slices.slice(slice);
    const isReached = this.presence(neighbour).isUp && this.#unreachedMs(slice.shard) === undefined;
    return freshness && { ...freshness, connected: freshness.connected && isReached };
  }

  reportedOf(neighbour: Neighbour, shard: ShardName): Iterable<Slice> {
    return this.#neighbours.get(neighbour)?.slices.slicesOf(shard) ?? [];
  }

  syncedAt(neighbour: Neighbour): readonly Slice[] {
    return this.#neighbours.get(neighbour)?.slices.synced ?? [];
  }
}
