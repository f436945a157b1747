/**
 * Decides how far the change log may be compacted and how much of the writer's time that may take. Pure; the schedule calls it.
 *
 *   over its bounds by    0 ──────────── a twentieth ────────── a tenth
 *   compaction's share    a tenth ─ rising ─ nine tenths ─────▶            Writers wait for it: the log stops growing.
 *   snapshots under way   hold it back ────┤ hold it back no more
 *
 * I13 At full write speed the log is never over a bound by more than a tenth: writers wait from a twentieth on, and one commit brings
 *     no more than a fortieth of the bytes. A bound of few changes may be exceeded by one commit, on the disk: nobody reads below C.
 */
import assert from 'node:assert/strict';
import { expired, Refused } from '../domain/errors.js';
import type { Revision } from '../domain/revision.js';
import type { Revisions } from '../domain/store-port.js';

export type HistoryLimits = Readonly<{
  historyAgeMs: number;
  historyChangesMax: number;
  historyBytesMax: number;
  tombstoneAgeMs: number;
  tombstonesMax: number;
}>;

export type LogState = Readonly<{
  published: Revision;
  /** Up to where the log is compacted on the disk. */
  compacted: Revision;
  /** Bytes of bodies above the compacted revision. */
  bytes: number;
  /** The newest revision known to be older than the history's age; 0 when none is. */
  agedRevision: Revision;
  /** For how long the oldest change has been older than that, as far as is known. */
  overdueMs: number;
  /** The lowest revision that a snapshot in progress reads. */
  heldRevision: Revision | undefined;
}>;

/** How far C may rise, and the share of the writer's time that compaction may take for it. */
export type Allowed = Readonly<{ upTo: Revision; share: number }>;

const shareMin = 0.1;
const shareMax = 0.9;
/** Changes that are only old do not grow with every write: writers wait for half the time at most. */
const agedShareMax = 0.5;
/** This far over a bound, compaction has its greatest share, and nothing holds it back. */
const urgentExcess = 0.05;
const commitBytesPart = 0.025;
/** Only an average of the bytes of a change is known: C rises by no more at once when bytes ask for it. */
const byBytesMax = 256;

export function decideCompaction(state: LogState, limits: HistoryLimits): Allowed {
  const { published, compacted, bytes, agedRevision, overdueMs, heldRevision } = state;
  const changes = published - compacted;
  const grown = Math.max(excess(changes, limits.historyChangesMax), excess(bytes, limits.historyBytesMax));
  const aged = overdueMs > 0 ? overdueMs / limits.historyAgeMs : 0;

  const byBytes = bytes > limits.historyBytesMax ? Math.ceil(changes * (1 - limits.historyBytesMax / bytes)) : 0;
  const wanted = Math.max(published - limits.historyChangesMax, compacted + Math.min(byBytes, byBytesMax), agedRevision);
  const isHeld = heldRevision !== undefined && Math.max(grown, aged) < urgentExcess;
  const upTo = Math.max(compacted, Math.min(published, isHeld ? Math.min(wanted, heldRevision) : wanted));
  return { upTo, share: Math.max(shareOf(grown, shareMax), shareOf(aged, agedShareMax)) };
}

/** What one commit may add, so that it does not carry the log far over its bound. */
export function commitBytesMax({ historyBytesMax }: HistoryLimits): number {
  return Math.max(1, Math.floor(historyBytesMax * commitBytesPart));
}

function excess(amount: number, max: number): number {
  if (max === 0) return amount > 0 ? Infinity : 0;
  return Math.max(0, amount / max - 1);
}

function shareOf(over: number, most: number): number {
  return shareMin + (most - shareMin) * Math.min(1, over / urgentExcess);
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

  /** For a snapshot, until `release`. This, and later `assertCovered`, throw Refused(Expired) when its history is no longer whole. */
  cover(revisions: Revisions, revision: Revision, nowMs: number): Readonly<{ assertCovered: () => void; release: () => void }> {
    assert(revision <= revisions.published, 'a snapshot of the future');
    const isCovered = (): void => assertCovered(revisions, revision);
    isCovered();
    return { assertCovered: isCovered, release: this.hold(revision, nowMs) };
  }

  lowest(nowMs: number): Revision | undefined {
    let lowest: Revision | undefined;
    for (const { revision, untilMs } of this.#held.values())
      if (untilMs > nowMs && (lowest === undefined || revision < lowest)) lowest = revision;
    return lowest;
  }
}

/** Throws Refused(Expired) when history above `position` is no longer whole. */
export function assertCovered(revisions: Pick<Revisions, 'compacted' | 'format'>, position: Revision): void {
  const { compacted } = revisions;
  if (position >= compacted) return;
  throw new Refused(expired(`too old resource version: ${revisions.format(position)} (${revisions.format(compacted)})`));
}
