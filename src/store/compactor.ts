/**
 * Decides up to which revision the change log may be compacted, and which share of the writer's
 * time compaction may take. Pure.
 *
 *   log over its bounds by   0 ──────────── 1/20 ──────────── 1/10
 *   compaction's share       1/10 ─ rising ─ 9/10 ─────────▶    writers wait: the log stops growing
 *   snapshots in progress    delay it ───────┤ no longer delay it
 *
 * I13 At full write speed the log exceeds no bound by more than a tenth. Writers wait once the
 *     excess is a twentieth, and one commit adds at most a fortieth of the bytes. On the disk, one
 *     commit may exceed a small `historyChangesMax`. Readers see no more than the bound, because
 *     the compacted revision, below which nobody reads, rises in the same tick.
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
  /** The compacted revision on the disk. */
  compacted: Revision;
  /** Bytes of bodies above the compacted revision. */
  bytes: number;
  /** The newest revision known to be older than `historyAgeMs`; 0 if there is none. */
  agedRevision: Revision;
  /**
   * For how long the oldest change has been older than `historyAgeMs`; 0 if it is not older, or if
   * its age is unknown.
   */
  overdueMs: number;
  /** The lowest revision that a snapshot in progress reads. */
  heldRevision: Revision | undefined;
}>;

/** `share`: the part of the writer's time that compaction may take, up to revision `upTo`. */
export type Allowed = Readonly<{ upTo: Revision; share: number }>;

const shareMin = 0.1;
const shareMax = 0.9;
/**
 * The greatest share while the log exceeds only its age. New changes do not raise that excess, so
 * writers wait for half of the time at most.
 */
const agedShareMax = 0.5;
/**
 * At this excess over a bound, compaction gets its greatest share, and snapshots no longer delay
 * it.
 */
const urgentExcess = 0.05;
const commitBytesPart = 0.025;
/**
 * The most revisions that one decision compacts to save bytes. It is low, because the decision
 * knows only the average size of changes.
 */
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

/** The bytes that one commit may add, so that the log does not exceed its bound by much. */
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
export class SnapshotPins {
  readonly #holdMs: number;
  readonly #pinned = new Set<Readonly<{ revision: Revision; untilMs: number }>>();

  constructor(holdMs: number) {
    this.#holdMs = holdMs;
  }

  pin(revision: Revision, nowMs: number): () => void {
    const pin = { revision, untilMs: nowMs + this.#holdMs };
    this.#pinned.add(pin);
    return () => this.#pinned.delete(pin);
  }

  /**
   * Pins the history that a snapshot at `revision` needs, until `release` or for `holdMs`. This
   * call and `assertCovered` throw Refused(Expired) if that history is incomplete.
   */
  cover(revisions: Revisions, revision: Revision, nowMs: number): Readonly<{ assertCovered: () => void; release: () => void }> {
    assert(revision <= revisions.published, 'a snapshot of the future');
    const isCovered = (): void => assertCovered(revisions, revision);
    isCovered();
    return { assertCovered: isCovered, release: this.pin(revision, nowMs) };
  }

  lowest(nowMs: number): Revision | undefined {
    let lowest: Revision | undefined;
    for (const { revision, untilMs } of this.#pinned) if (untilMs > nowMs && (lowest === undefined || revision < lowest)) lowest = revision;
    return lowest;
  }
}

/** Throws Refused(Expired) if history above `position` is incomplete. */
export function assertCovered(revisions: Pick<Revisions, 'compacted' | 'format'>, position: Revision): void {
  const { compacted } = revisions;
  if (position >= compacted) return;
  throw new Refused(expired(`too old resource version: ${revisions.format(position)} (${revisions.format(compacted)})`));
}
