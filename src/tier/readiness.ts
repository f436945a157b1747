/**
 * Whether readers may rely on this cache. Without a parent it is always ready. With one, it is
 * ready once every slice that the parent reports as synced is synced here, at the latest after the
 * grace time. It is ready from the start if everything on its disk from the parent was ever synced.
 * Once ready, it stays ready.
 */
import type { Clock } from '../domain/ports.js';
import type { Slice } from '../domain/slice.js';
import type { PublishedState } from '../domain/published-state.js';
import type { ReportedFreshness } from './reported-freshness.js';

export type ReadinessParts = Readonly<{
  known: PublishedState;
  reported: Pick<ReportedFreshness, 'presence' | 'syncedAt'>;
  clock: Clock;
  hasParent: boolean;
}>;

export class Readiness {
  readonly #parts: ReadinessParts;
  readonly #graceMs: number;
  readonly #startedMs: number;
  #isReady: boolean;

  constructor(parts: ReadinessParts, { readyGraceMs }: Readonly<{ readyGraceMs: number }>) {
    const { known, clock, hasParent } = parts;
    this.#parts = parts;
    this.#graceMs = readyGraceMs;
    this.#startedMs = clock.now();
    // A slice that was ever synced is better than none, however old it is. A slice that was never
    // synced is not.
    const held = [...known.shards].filter(({ via }) => via === 'parent').flatMap(({ shard }) => [...known.slicesOf(shard)]);
    this.#isReady = !hasParent || (held.length > 0 && held.every(({ everSynced }) => everSynced));
  }

  get isReady(): boolean {
    if (this.#isReady) return true;
    const { reported, clock } = this.#parts;
    const isAllHere = reported.presence('parent').hasReported && reported.syncedAt('parent').every((slice) => this.#isHere(slice));
    this.#isReady = isAllHere || clock.now() - this.#startedMs >= this.#graceMs;
    return this.#isReady;
  }

  /** A shard without a via has nothing here yet. A removed shard needs nothing. */
  #isHere(slice: Slice): boolean {
    const { known } = this.#parts;
    const state = known.shard(slice.shard);
    if (state?.via === undefined) return state?.removed === true;
    return state.via !== 'parent' || known.isSynced(slice);
  }
}
