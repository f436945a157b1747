/** When a sender reports how fresh each slice is: at intervals, and soon when one gains or loses its source, falls behind or catches up. */
import type { FrameOf, SliceFreshness } from '../frames/frame.js';
import type { SliceFeed } from './slice-feed.js';
import type { Window } from './window.js';

/** A slice that lags less is not behind: it may only wait for its ack. */
const behindMs = 1_000;

export class OutgoingStatus {
  readonly #intervalMs: number;
  /** In the order of the feeds. */
  #reported: readonly SliceFreshness[] = [];
  #reportedMs: number;

  constructor(nowMs: number, { statusIntervalMs }: Readonly<{ statusIntervalMs: number }>) {
    this.#intervalMs = statusIntervalMs;
    this.#reportedMs = nowMs;
  }

  /** The status to send now; undefined: none. */
  due(feeds: Iterable<SliceFeed>, window: Window<SliceFeed> | undefined, nowMs: number): FrameOf<'status'> | undefined {
    const tally = window?.tally();
    const freshness = [...feeds].map((feed): SliceFreshness => {
      const { slice, phase, connected, lagMs, whole } = feed.progress(nowMs, tally?.get(feed));
      return { slice, connected, synced: phase === 'synced', lagMs, whole };
    });
    const isNews = freshness.some((each, i) => differs(each, this.#reported[i]));
    if (freshness.length === 0 || (!isNews && nowMs - this.#reportedMs < this.#intervalMs)) return undefined;
    [this.#reported, this.#reportedMs] = [freshness, nowMs];
    return { kind: 'status', freshness };
  }
}

function differs(now: SliceFreshness, reported: SliceFreshness | undefined): boolean {
  if (
    reported?.slice !== now.slice ||
    reported.connected !== now.connected ||
    reported.synced !== now.synced ||
    reported.whole !== now.whole
  )
    return true;
  return reported.lagMs >= behindMs !== now.lagMs >= behindMs;
}
