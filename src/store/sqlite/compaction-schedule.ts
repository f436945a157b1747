/**
 * When the committer compacts: every so often when there is something to do, in steps with rest between them, so that
 * compaction takes at most a tenth of the writer's time (D4).
 */
import type { Clock } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import { compactionRowsMax, nextCompacted, type HistoryLimits, type LogState } from './compactor.js';

export type CompactionOrder = Readonly<{ upTo: Revision; tombstonesUpTo: Revision; tombstonesMax: number; rowsMax: number }>;

export type CompactionParts = Readonly<{
  clock: Clock;
  state: (nowMs: number) => LogState;
  /** The newest revision older than tombstones are kept. */
  agedTombstones: (nowMs: number) => Revision;
  /** From where on every delete is remembered. */
  rememberedFrom: () => Revision;
  /** Has the committer take a step; `stepped` or `failed` follows. */
  step: (order: CompactionOrder) => void;
}>;

const intervalMs = 10_000;
/** A step is followed by nine times its own length of rest. */
const restFactor = 9;

export class CompactionSchedule {
  readonly #parts: CompactionParts;
  readonly #limits: HistoryLimits;
  /** Whether the committer has done all it was asked; at first nobody knows what the life before has left undone. */
  #isDone = false;
  #isClosed = false;
  #cancel: () => void = () => {};

  constructor(parts: CompactionParts, limits: HistoryLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#schedule(intervalMs);
  }

  stepped(done: boolean, elapsedMs: number): void {
    this.#isDone = done;
    this.#schedule(done ? intervalMs : elapsedMs * restFactor);
  }

  failed(): void {
    this.#schedule(intervalMs);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #schedule(delayMs: number): void {
    if (!this.#isClosed) this.#cancel = this.#parts.clock.after(delayMs, () => this.#compact());
  }

  #compact(): void {
    const nowMs = this.#parts.clock.now();
    const state = this.#parts.state(nowMs);
    const upTo = nextCompacted(state, this.#limits);
    const tombstonesUpTo = Math.min(upTo, this.#parts.agedTombstones(nowMs));
    const isIdle = this.#isDone && upTo === state.compacted && tombstonesUpTo <= this.#parts.rememberedFrom();
    if (isIdle) return this.#schedule(intervalMs);
    this.#isDone = false;
    this.#parts.step({ upTo, tombstonesUpTo, tombstonesMax: this.#limits.tombstonesMax, rowsMax: compactionRowsMax });
  }
}
