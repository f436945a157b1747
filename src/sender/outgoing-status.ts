/**
 * What a sender reports of how fresh its slices are: all of them once, then what has changed. Soon, when a slice gains or loses its source, falls
 * behind or catches up; at intervals, how far behind it is. A look compares each slice with what was reported; a quiet one is not reported again.
 */
import type { FrameOf, SliceFreshness } from '../frames/frame.js';
import type { Slice } from '../domain/slice.js';
import type { SliceFeed } from './slice-feed.js';
import type { Window } from './window.js';

/** A lag is reported in steps, or it would change every time. What lags less than one may only wait for its ack. */
const lagStepMs = 1_000;
/** Looked at in one turn of the event loop, and reported in one frame. */
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

  /** What is to be reported now, in steps that want a turn of the event loop each; undefined where a step has found nothing. Slices may come and go between two. */
  *look(
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
      if (isNews(now, this.#reported.get(name), withLags)) {
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

  /** The first slices that were reported and are not there any more. */
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

function isNews(now: SliceFreshness, reported: SliceFreshness | undefined, withLags: boolean): boolean {
  if (reported?.connected !== now.connected || reported.synced !== now.synced || reported.whole !== now.whole) return true;
  const [step, reportedStep] = [stepOf(now), stepOf(reported)];
  return withLags ? reportedStep !== step : reportedStep > 0 !== step > 0;
}

function stepOf({ lagMs }: SliceFreshness): number {
  return Math.floor(lagMs / lagStepMs);
}
