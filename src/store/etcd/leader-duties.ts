/**
 * What another server has left undone when it ended: the leader finishes removals whose fences stand, and writes namesakes of deleted objects again. It leaves
 * each to its server for a while first. Doing it twice does no harm.
 */
import type { Clock } from '../../domain/ports.js';
import { halfRemoved } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import type { State } from '../state.js';
import type { PublishedState } from './published-state.js';

export type LeaderDutiesParts = Readonly<{
  published: Pick<PublishedState, 'owedRewrites'>;
  state: Pick<State, 'shards' | 'slices'>;
  clock: Clock;
  intervalMs: number;
  isLeader: () => boolean;
  /** Resolves when there is nothing left of them, or that could not be done. */
  clear: (shards: readonly ShardName[]) => Promise<void>;
  rewrite: (mark: string) => Promise<void>;
}>;

const removalsIntervalMs = 10_000;

export class LeaderDuties {
  readonly #parts: LeaderDutiesParts;
  /** What was to be written again at the look before. */
  #marks: ReadonlyMap<string, Revision> = new Map();
  #clearedMs = -Infinity;
  #isClearing = false;
  #cancel: () => void;

  constructor(parts: LeaderDutiesParts) {
    this.#parts = parts;
    this.#cancel = this.#lookLater();
  }

  look(): void {
    const { published, clock, isLeader, rewrite } = this.#parts;
    if (!isLeader()) return;
    const marks = published.owedRewrites;
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

  #lookLater(): () => void {
    const { clock, intervalMs } = this.#parts;
    return clock.after(intervalMs, () => {
      this.#cancel = this.#lookLater();
      this.look();
    });
  }
}
