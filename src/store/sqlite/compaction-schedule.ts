/**
 * Gives compaction its turns (compactor.ts). A step follows a commit as soon as the log is over a
 * bound. A rest after each step keeps compaction within its share of the writer's time. Every
 * commit adds to the time that compaction is owed. While compaction is owed a step or more, commits
 * wait.
 *
 * A step should take `stepMs`, or the time owed up to `stepMsMax`, including its fsync. How much
 * time the fsync leaves for work depends on the disk, so the schedule learns that from earlier
 * steps.
 *
 *   idle ──over a bound──▶ stepping ──owed less than a step──▶ resting ──timer──▶ stepping
 *                           ▲    └──owed a step──┐
 *                           └────────────────────┘  commits wait
 *
 * The timer of `idle` finds changes that have become too old, and files that the last step could
 * not shorten.
 */
import type { Clock } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import type { CompactedStep } from './committer-messages.js';
import type { CompactionOrder } from './compaction.js';
import { decideCompaction, type HistoryLimits, type LogState } from '../compactor.js';

export type CompactionParts = Readonly<{
  clock: Clock;
  state: () => LogState;
  /** The newest revision that is older than `tombstoneAgeMs`. */
  agedTombstones: () => Revision;
  /** Forbids readers to read below `compacted`, because the committer may remove those changes. */
  raise: (compacted: Revision) => void;
  /** Sends the committer one step; `stepped` or `failed` follows. */
  step: (order: CompactionOrder) => void;
}>;

const stepMs = 5;
const stepMsMax = 20;
/** The part of a step's time that is work, not fsync: its first, least and greatest value. */
const workPart = { first: 0.25, min: 0.05, max: 0.8 };
/**
 * The longest time until the schedule finds changes that have become too old, or a disk that
 * accepts writes again.
 */
const idleMsMax = 1_000;
/** `#idleMs` is also at most this part of `historyAgeMs`. */
const idlePart = 0.02;

export class CompactionSchedule {
  readonly #parts: CompactionParts;
  readonly #limits: HistoryLimits;
  readonly #idleMs: number;
  /** False at first, because the previous life may have left compaction unfinished. */
  #isSettled = false;
  #rememberedFrom: Revision = 0;
  #state: 'idle' | 'stepping' | 'resting' | 'closed' = 'idle';
  #owedMs = 0;
  #targetMs = stepMs;
  #workPart = workPart.first;
  #cancel: () => void = () => {};

  constructor(parts: CompactionParts, limits: HistoryLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#idleMs = Math.max(1, Math.min(idleMsMax, limits.historyAgeMs * idlePart));
    this.#wait('idle', this.#idleMs);
  }

  /** Whether commits wait for the step under way. */
  get isFirst(): boolean {
    return this.#state === 'stepping' && this.#owedMs >= stepMs;
  }

  committed(elapsedMs: number): void {
    const { upTo, compacted, share } = this.#decide();
    if (upTo === compacted) {
      this.#owedMs = 0;
      return;
    }
    this.#owedMs += (elapsedMs * share) / (1 - share);
    if (this.#state === 'idle' || (this.#state === 'resting' && this.#owedMs >= stepMs)) this.#step(upTo);
  }

  stepped({ done, settled, tombstonesFrom }: Pick<CompactedStep, 'done' | 'settled' | 'tombstonesFrom'>, elapsedMs: number): void {
    if (this.#state === 'closed') return;
    if (!done) this.#workPart = learnt(this.#workPart, elapsedMs / this.#targetMs);
    this.#isSettled = settled;
    this.#rememberedFrom = tombstonesFrom;
    this.#owedMs = Math.max(0, this.#owedMs - elapsedMs);
    const { upTo, compacted, share } = this.#decide();
    // If a reader keeps the files from shrinking, the next attempt waits `idleMsMax`, even if a
    // short history makes `#idleMs` shorter.
    if (done && upTo === compacted) this.#rest(settled ? this.#idleMs : idleMsMax);
    else if (this.#owedMs >= stepMs) this.#step(upTo);
    else this.#wait('resting', elapsedMs * (1 / share - 1));
  }

  failed(): void {
    this.#rest();
  }

  close(): void {
    this.#cancel();
    this.#state = 'closed';
  }

  #rest(idleMs = this.#idleMs): void {
    this.#owedMs = 0;
    this.#wait('idle', idleMs);
  }

  #wait(state: 'idle' | 'resting', delayMs: number): void {
    if (this.#state === 'closed') return;
    this.#state = state;
    this.#cancel = this.#parts.clock.after(delayMs, () => this.#compact());
  }

  #compact(): void {
    const { upTo, compacted } = this.#decide();
    if (!this.#isSettled || upTo > compacted || this.#tombstonesUpTo(upTo) > this.#rememberedFrom) this.#step(upTo);
    else this.#rest();
  }

  #step(upTo: Revision): void {
    this.#cancel();
    this.#state = 'stepping';
    this.#targetMs = Math.min(stepMsMax, Math.max(stepMs, this.#owedMs));
    this.#parts.step({
      upTo,
      tombstonesUpTo: this.#tombstonesUpTo(upTo),
      tombstonesMax: this.#limits.tombstonesMax,
      budgetMs: this.#targetMs * this.#workPart,
    });
  }

  #tombstonesUpTo(upTo: Revision): Revision {
    return Math.min(upTo, this.#parts.agedTombstones());
  }

  #decide(): { upTo: Revision; compacted: Revision; share: number } {
    const state = this.#parts.state();
    const allowed = decideCompaction(state, this.#limits);
    this.#parts.raise(allowed.upTo);
    return { ...allowed, compacted: state.compacted };
  }
}

/** `times`: a step's duration, divided by the target. */
function learnt(part: number, times: number): number {
  const next = times > 1.2 ? part * 0.8 : times < 0.8 ? part * 1.1 : part;
  return Math.min(workPart.max, Math.max(workPart.min, next));
}
