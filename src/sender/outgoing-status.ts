/**
 * Decides which freshness a sender reports: all slices once, then changes. It reports at once when
 * a slice gains or loses its source, falls behind or catches up. At intervals it reports how far
 * slices are behind. Each call compares all slices with their last report; unchanged slices are not
 * reported again.
 */
import type { FrameOf, SliceFreshness } from '../frames/frame.js';
import type { Slice } from '../domain/slice.js';
import type { SliceFeed } from './slice-feed.js';
import type { Window } from './window.js';

/**
 * Lags are rounded down to this step; otherwise every report would differ. A lag below one step may
 * be no more than the wait for an ack.
 */
const lagStepMs = 1_000;
/** Slices compared in one turn of the event loop, and reported in one frame. */
const slicesPerTurn = 500;

export class OutgoingStatus {
  readonly #intervalMs: number;
  /** By the text of the slice. */
  readonly #reported = new Map<string, SliceFreshness>();
  #lagsReportedMs: number;

  constructor(nowMs: number, { statusIntervalMs }: Readonly<{ statusIntervalMs: number }>) {
    this.#intervalMs = statusIntervalMs;
    this.#lagsReportedMs = nowMs;
  }

  /**
   * The frames to send, one step at a time. The caller takes a turn of the event loop after each
   * step. A step yields undefined if nothing changed. Slices may be added and removed between
   * steps.
   */
  *changedFrames(
    feeds: ReadonlyMap<string, SliceFeed>,
    window: Window<SliceFeed>,
    nowMs: number,
  ): Generator<FrameOf<'status'> | undefined, void, undefined> {
    const withLags = nowMs - this.#lagsReportedMs >= this.#intervalMs;
    if (withLags) this.#lagsReportedMs = nowMs;
    const tally = window.tally();
    let freshness: SliceFreshness[] = [];
    let left = slicesPerTurn;
    for (const [name, feed] of feeds) {
      const now = feed.freshness(nowMs, tally.get(feed));
      if (hasChanged(now, this.#reported.get(name), withLags)) {
        const reported = { ...now, lagMs: stepOf(now) * lagStepMs };
        this.#reported.set(name, reported);
        freshness.push(reported);
      }
      left -= 1;
      if (left > 0) continue;
      yield freshness.length === 0 ? undefined : { kind: 'status', freshness, withdrawn: [] };
      freshness = [];
      left = slicesPerTurn;
    }
    const withdrawn = this.#reported.size > feeds.size ? this.#withdraw(feeds) : [];
    if (freshness.length > 0 || withdrawn.length > 0) yield { kind: 'status', freshness, withdrawn };
  }

  /** Up to slicesPerTurn slices that were reported and have been withdrawn since. */
  #withdraw(feeds: ReadonlyMap<string, SliceFeed>): readonly Slice[] {
    const withdrawn: Slice[] = [];
    for (const [name, { slice }] of this.#reported) {
      if (feeds.has(name)) continue;
      this.#reported.delete(name);
      if (withdrawn.push(slice) === slicesPerTurn) break;
    }
    return withdrawn;
  }
}

function hasChanged(now: SliceFreshness, reported: SliceFreshness | undefined, withLags: boolean): boolean {
  if (reported?.connected !== now.connected || reported.synced !== now.synced || reported.whole !== now.whole) return true;
  const [step, reportedStep] = [stepOf(now), stepOf(reported)];
  return withLags ? reportedStep !== step : reportedStep > 0 !== step > 0;
}

function stepOf({ lagMs }: SliceFreshness): number {
  return Math.floor(lagMs / lagStepMs);
}
