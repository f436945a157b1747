/**
 * Finishes the work of servers that have ended. The leader completes half-done removals of shards,
 * at most every ten seconds. It rewrites a namesake of a deleted object if two checks in a row find
 * the rewrite pending. Doing the work twice is harmless.
 */
import type { Clock } from '../../domain/ports.js';
import { halfRemoved } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import type { State } from '../state.js';
import type { PublishedState } from './published-state.js';

export type LeaderDutiesParts = Readonly<{
  published: Pick<PublishedState, 'pendingRewrites'>;
  state: Pick<State, 'shards' | 'slices'>;
  clock: Clock;
  intervalMs: number;
  isLeader: () => boolean;
  /** Resolves when the removal is complete or has failed. */
  clear: (shards: readonly ShardName[]) => Promise<void>;
  rewrite: (mark: string) => Promise<void>;
}>;

const removalsIntervalMs = 10_000;

export class LeaderDuties {
  readonly #parts: LeaderDutiesParts;
  /** The rewrites that were pending at the previous check. */
  #marks: ReadonlyMap<string, Revision> = new Map();
  #clearedMs = -Infinity;
  #isClearing = false;
  #cancel: () => void;

  constructor(parts: LeaderDutiesParts) {
    this.#parts = parts;
    this.#cancel = this.#runLater();
  }

  runIfDue(): void {
    const { published, clock, isLeader, rewrite } = this.#parts;
    if (!isLeader()) return;
    const marks = published.pendingRewrites;
    for (const [mark, revision] of marks) if (this.#marks.get(mark) === revision) void rewrite(mark);
    this.#marks = marks;
    if (!this.#isClearing && clock.now() - this.#clearedMs >= removalsIntervalMs) void this.#clear();
  }

  close(): void {
    this.#cancel();
  }

  async #clear(): Promise<void> {
    const { state, clock, clear } = this.#parts;
    const names = halfRemoved(state.shards, state.slices);
    this.#clearedMs = clock.now();
    if (names.length === 0) return;
    this.#isClearing = true;
    await clear(names);
    this.#isClearing = false;
    this.#clearedMs = clock.now();
  }

  #runLater(): () => void {
    const { clock, intervalMs } = this.#parts;
    return clock.after(intervalMs, () => {
      this.#cancel = this.#runLater();
      this.runIfDue();
    });
  }
}
