/**
 * The reports of a link's sending half on the freshness of slices that cross. They cover all slices
 * once, then the marked slices that have changed, in at most one round per heartbeat of the other
 * end.
 *
 *   heartbeat ──▶ check marked slices, P is published ──▶ the tail has read up to P ──▶ report
 *
 * The other end trusts a report once everything before it has arrived. So no report may overtake a
 * change that it takes into account. A quiet slice costs nothing.
 *
 * Bounds: one text per slice; one round of reports at a time.
 */
import type { Revision } from '../../domain/revision.js';
import type { Slice } from '../../domain/slice.js';
import type { FrameOf, SliceFreshness, SliceReport } from '../../frames/frame.js';

/**
 * Whether the slice's source is connected, the known lag, and whether this cache has everything
 * that the shard has of the slice.
 */
export type FreshnessOf = (slice: Slice) => SliceReport;

export type OutgoingReportsParts = Readonly<{
  isSynced: (slice: Slice) => boolean;
  freshnessOf: FreshnessOf;
  /** Whether everything that this cache has of the slice may cross. */
  crossesWhole: (slice: Slice) => boolean;
  /** Whether all other neighbours that this cache ever had are connected, and complete too. */
  isComplete: () => boolean;
  published: () => Revision;
  /** The slices to check. A slice leaves the set when it is checked. */
  marked: Set<ReportedSlice>;
}>;

/**
 * A slice, and the text of its last report. `hasLeft`: the slice does not cross any more, so the
 * report says that nothing is known of it.
 */
export type ReportedSlice = { readonly slice: Slice; freshness: string; readonly hasLeft: boolean };

export type Report = Omit<FrameOf<'report'>, 'kind' | 'sequence'>;

/** How many slices one turn of the event loop checks, and one frame reports. */
const slicesPerTurn = 250;
/** The lag is rounded down to steps, because it would otherwise change with every report. */
const lagStepMs = 1_000;

export class OutgoingReports {
  readonly #parts: OutgoingReportsParts;
  /** The number of the heartbeat to answer; 0: none. */
  #heartbeat = 0;
  #isAllKnown = false;
  #hasReportedAll = false;
  /** How many marked slices of this round are not checked yet. */
  #left = 0;
  readonly #waiting: Readonly<{ report: Report; upTo: Revision }>[] = [];

  constructor(parts: OutgoingReportsParts) {
    this.#parts = parts;
  }

  request(heartbeat: number): void {
    this.#heartbeat = heartbeat;
  }

  /**
   * All slices are marked now. They are reported without a heartbeat, because readers at the other
   * end may be waiting for that report.
   */
  allKnown(): void {
    this.#isAllKnown = true;
  }

  /** Checks some slices if a report is due. Returns false if none is due. */
  check(): boolean {
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

  /**
   * Takes the next report, if all changes that it takes into account are queued up to `position`.
   */
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
