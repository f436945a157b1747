/**
 * Decides how far the change log may be compacted (D4): by age, count or bytes, whichever asks for most, but never past
 * what a snapshot in progress still reads, for a bounded time. Pure; the store asks it and tells the committer.
 */
import type { Revision } from '../../domain/revision.js';

export type HistoryLimits = Readonly<{
  historyAgeMs: number;
  historyChangesMax: number;
  historyBytesMax: number;
  tombstoneAgeMs: number;
  tombstonesMax: number;
}>;

export type LogState = Readonly<{
  published: Revision;
  compacted: Revision;
  /** Bytes of bodies above the compacted revision. */
  bytes: number;
  /** The newest revision known to be older than the history's age; 0 when none is. */
  agedRevision: Revision;
  /** The lowest revision that a snapshot in progress reads. */
  heldRevision: Revision | undefined;
}>;

/** Changes one step of compaction passes: about a millisecond of the committer's time. */
export const compactionRowsMax = 200;

/** The revision the next step may raise C to; C itself when there is nothing to do. */
export function nextCompacted(state: LogState, limits: HistoryLimits): Revision {
  const { published, compacted, bytes, agedRevision, heldRevision } = state;
  const byCount = published - limits.historyChangesMax;
  const byBytes = bytes > limits.historyBytesMax ? compacted + compactionRowsMax : 0;
  const wanted = Math.min(published, Math.max(byCount, byBytes, agedRevision));
  const allowed = heldRevision === undefined ? wanted : Math.min(wanted, heldRevision);
  return Math.max(compacted, Math.min(allowed, compacted + compactionRowsMax));
}

/** Revisions that snapshots in progress still read, each for at most `holdMs`. */
export class Holds {
  readonly #holdMs: number;
  readonly #held = new Map<symbol, { revision: Revision; untilMs: number }>();

  constructor(holdMs: number) {
    this.#holdMs = holdMs;
  }

  hold(revision: Revision, nowMs: number): () => void {
    const hold = Symbol('hold');
    this.#held.set(hold, { revision, untilMs: nowMs + this.#holdMs });
    return () => this.#held.delete(hold);
  }

  lowest(nowMs: number): Revision | undefined {
    const current = [...this.#held.values()].filter(({ untilMs }) => untilMs > nowMs);
    return current.length === 0 ? undefined : Math.min(...current.map(({ revision }) => revision));
  }
}
