/**
 * What one end of a link tells of the freshness of the slices that cross it: all of it once, ended by a frame of none, then what has
 * changed of those that were marked. A quiet slice costs nothing. Bound: one text per slice.
 */
import type { Slice } from '../domain/slice.js';
import type { FrameOf, SliceFreshness } from '../frames/frame.js';

/** Whether the pusher of a slice is connected somewhere, and how far behind it is known to be. */
export type FreshnessOf = (slice: Slice) => Readonly<{ connected: boolean; lagMs: number }>;

export type ChangedFreshnessParts = Readonly<{ isSynced: (slice: Slice) => boolean; freshnessOf: FreshnessOf }>;

/** A slice, and the text of what was told of it last. */
export type ToldSlice = { readonly slice: Slice; freshness: string };

/** Looked at in one turn of the event loop, and told in one frame. */
const slicesPerTurn = 1_000;
/** A lag is told in steps: it would change every time. */
const lagStepMs = 1_000;

export class ChangedFreshness {
  readonly #parts: ChangedFreshnessParts;
  #isEnded = false;

  constructor(parts: ChangedFreshnessParts) {
    this.#parts = parts;
  }

  /** The frames that tell what was not told yet; undefined between them, to give the event loop back. `isAll`: no other slices are to be expected. */
  *frames(marked: Set<ToldSlice>, isAll: boolean): Iterable<FrameOf<'status'> | undefined> {
    let changed: SliceFreshness[] = [];
    let looked = 0;
    for (const told of marked) {
      marked.delete(told);
      const freshness = this.#changeOf(told);
      if (freshness !== undefined) changed.push(freshness);
      looked += 1;
      if (looked % slicesPerTurn !== 0) continue;
      yield changed.length === 0 ? undefined : { kind: 'status', freshness: changed };
      changed = [];
    }
    if (changed.length > 0) yield { kind: 'status', freshness: changed };
    if (!isAll || this.#isEnded) return;
    this.#isEnded = true;
    yield { kind: 'status', freshness: [] };
  }

  #changeOf(told: ToldSlice): SliceFreshness | undefined {
    const { slice } = told;
    const { isSynced, freshnessOf } = this.#parts;
    const { connected, lagMs } = freshnessOf(slice);
    const freshness = { slice, connected, synced: isSynced(slice), lagMs: Math.floor(lagMs / lagStepMs) * lagStepMs };
    const text = `${freshness.connected} ${freshness.synced} ${freshness.lagMs}`;
    if (told.freshness === text) return undefined;
    told.freshness = text;
    return freshness;
  }
}
