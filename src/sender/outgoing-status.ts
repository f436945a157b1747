/** When a cache is told how fresh each slice is: now and then, and soon when one has got its source or lost it, or has fallen behind or caught up. */
import type { FrameOf, SliceFreshness } from '../frames/frame.js';
import type { SliceFeed } from './slice-feed.js';
import type { Window } from './window.js';

/** A slice that lags less is not behind: it may only wait for its answer. */
const behindMs = 1_000;

export class OutgoingStatus {
  readonly #intervalMs: number;
  /** In the order of the feeds. */
  #told: readonly SliceFreshness[] = [];
  #toldMs: number;

  constructor(nowMs: number, { statusIntervalMs }: Readonly<{ statusIntervalMs: number }>) {
    this.#intervalMs = statusIntervalMs;
    this.#toldMs = nowMs;
  }

  /** What is to be sent now; undefined: nothing. */
  due(feeds: Iterable<SliceFeed>, window: Window<SliceFeed> | undefined, nowMs: number): FrameOf<'status'> | undefined {
    const tally = window?.tally();
    const freshness = [...feeds].map((feed): SliceFreshness => {
      const { slice, phase, connected, lagMs, whole } = feed.progress(nowMs, tally?.get(feed));
      return { slice, connected, synced: phase === 'stated', lagMs, whole };
    });
    const isNews = freshness.some((each, i) => differs(each, this.#told[i]));
    if (freshness.length === 0 || (!isNews && nowMs - this.#toldMs < this.#intervalMs)) return undefined;
    [this.#told, this.#toldMs] = [freshness, nowMs];
    return { kind: 'status', freshness };
  }
}

function differs(now: SliceFreshness, told: SliceFreshness | undefined): boolean {
  if (told?.slice !== now.slice || told.connected !== now.connected || told.synced !== now.synced || told.whole !== now.whole) return true;
  return told.lagMs >= behindMs !== now.lagMs >= behindMs;
}
