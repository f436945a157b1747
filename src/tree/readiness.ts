/**
 * Whether readers may rely on this cache. Without a parent it is always ready. With one, it is
 * ready once every slice that the parent reports as synced is synced here, at the latest after the
 * grace time. It is ready from the start if its disk has slices from the parent, and all of them
 * were ever synced. Once ready, it stays ready.
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
    // Readers may use a slice that was ever synced, however old it is. A slice that was never
    // synced may lack objects.
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

  /** A slice of a shard without a via is not here yet, unless the shard was removed. */
  #isHere(slice: Slice): boolean {
    const { known } = this.#parts;
    const state = known.shard(slice.shard);
    if (state?.via === undefined) return state?.removed === true;
    return state.via !== 'parent' || known.isSynced(slice);
  }
}
