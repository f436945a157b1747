/**
 * What the sending half of a link reports of the freshness of the slices that cross it: all once, then what has changed of the marked slices, at most
 * once per heartbeat of the other end.
 *
 *   heartbeat ──▶ look at what is marked ──▶ wait until the tail has read on to what was published at that look ──▶ report
 *
 * The other end believes a report once everything before it has come, so no report may overtake a change that it counts. A quiet slice
 * costs nothing. Bounds: one text per slice; one round of reports at a time.
 */
import type { Revision } from '../domain/revision.js';
import type { Slice } from '../domain/slice.js';
import type { FrameOf, SliceFreshness, SliceReport } from '../frames/frame.js';

/** Whether a slice's source is connected, how far behind it is known to be, and whether all the shard has of the slice is here. */
export type FreshnessOf = (slice: Slice) => SliceReport;

export type OutgoingReportsParts = Readonly<{
  isSynced: (slice: Slice) => boolean;
  freshnessOf: FreshnessOf;
  /** Whether all that is here of a slice may cross. */
  crossesWhole: (slice: Slice) => boolean;
  /** Whether all other neighbours this cache ever had are connected, and complete too. */
  isComplete: () => boolean;
  published: () => Revision;
  /** Slices to be looked at; each that is looked at is removed. */
  marked: Set<ReportedSlice>;
}>;

/** A slice, and the text of its last report. `hasLeft`: it crosses no longer, so nothing is known of it from here on. */
export type ReportedSlice = { readonly slice: Slice; freshness: string; readonly hasLeft: boolean };

export type Report = Omit<FrameOf<'report'>, 'kind' | 'sequence'>;

/** Looked at in one turn of the event loop, and reported in one frame. */
const slicesPerTurn = 250;
/** A lag is reported in steps, or it would change every time. */
const lagStepMs = 1_000;

export class OutgoingReports {
  readonly #parts: OutgoingReportsParts;
  /** The heartbeat to be answered; 0 is none. */
  #heartbeat = 0;
  #isAllKnown = false;
  #hasReportedAll = false;
  /** Of this round: how many are not looked at yet. */
  #left = 0;
  readonly #waiting: Readonly<{ report: Report; upTo: Revision }>[] = [];

  constructor(parts: OutgoingReportsParts) {
    this.#parts = parts;
  }

  /** The other end asks for a report. */
  ask(heartbeat: number): void {
    this.#heartbeat = heartbeat;
  }

  /** All slices are marked now: they are reported without a heartbeat, because the other end's readers may be waiting for it. */
  allKnown(): void {
    this.#isAllKnown = true;
  }

  /** Looks at some slices, if a report is due. False: no report is due. */
  look(): boolean {
    const { marked, published } = this.#parts;
    const isEnding = this.#isAllKnown && !this.#hasReportedAll;
    if (this.#left === 0) {
      if (this.#waiting.length > 0 || (this.#heartbeat === 0 && !isEnding)) return false;
      this.#left = marked.size;
    }
    const freshness = this.#changes(Math.min(this.#left, slicesPerTurn));
    this.#left = Math.min(marked.size, Math.max(0, this.#left - slicesPerTurn));
    const isLast = this.#left === 0;
    const heartbeat = isLast ? this.#heartbeat : 0;
    const isAll = isLast && isEnding;
    if (isLast) this.#heartbeat = 0;
    if (isAll) this.#hasReportedAll = true;
    const report: Report = { freshness, heartbeat, isAll, isComplete: this.#hasReportedAll && this.#parts.isComplete() };
    if (isLast || freshness.length > 0) this.#waiting.push({ report, upTo: published() });
    return true;
  }

  /** The next report whose changes are all queued, up to `position`. */
  take(position: Revision): Report | undefined {
    const [first] = this.#waiting;
    if (first === undefined || first.upTo > position) return undefined;
    this.#waiting.shift();
    return first.report;
  }

  #changes(count: number): readonly SliceFreshness[] {
    const { marked } = this.#parts;
    const changed: SliceFreshness[] = [];
    let looked = 0;
    for (const reported of marked) {
      if (looked === count) break;
      looked += 1;
      marked.delete(reported);
      const freshness = this.#changeOf(reported);
      if (freshness !== undefined) changed.push(freshness);
    }
    return changed;
  }

  #changeOf(reported: ReportedSlice): SliceFreshness | undefined {
    const freshness = reported.hasLeft ? unknownOf(reported.slice) : this.#freshnessOf(reported.slice);
    const text = `${freshness.connected} ${freshness.synced} ${freshness.lagMs} ${freshness.whole}`;
    if (reported.freshness === text) return undefined;
    reported.freshness = text;
    return freshness;
  }

  #freshnessOf(slice: Slice): SliceFreshness {
    const { isSynced, freshnessOf, crossesWhole } = this.#parts;
    const { connected, lagMs, whole } = freshnessOf(slice);
    return {
      slice,
      connected,
      synced: isSynced(slice),
      lagMs: Math.floor(lagMs / lagStepMs) * lagStepMs,
      whole: whole && crossesWhole(slice),
    };
  }
}

function unknownOf(slice: Slice): SliceFreshness {
  return { slice, connected: false, synced: false, lagMs: 0, whole: false };
}
