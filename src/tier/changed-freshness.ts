/**
 * What one end of a link tells of the freshness of the slices that cross it: all of it once, ended by a frame of none, then what has
 * changed. Bound: one text per slice.
 */
import { formatSlice, type Slice } from '../domain/slice.js';
import type { FrameOf, SliceFreshness } from '../frames/frame.js';

/** Whether the pusher of a slice is connected somewhere, and how far behind it is known to be. */
export type FreshnessOf = (slice: Slice) => Readonly<{ connected: boolean; lagMs: number }>;

export type ChangedFreshnessParts = Readonly<{ isSynced: (slice: Slice) => boolean; freshnessOf: FreshnessOf }>;

/** Looked at in one turn of the event loop, and told in one frame. */
const slicesPerTurn = 1_000;
/** A lag is told in steps: it would change every time. */
const lagStepMs = 1_000;

export class ChangedFreshness {
  readonly #parts: ChangedFreshnessParts;
  readonly #told = new Map<string, string>();
  #isFirst = true;

  constructor(parts: ChangedFreshnessParts) {
    this.#parts = parts;
  }

  /** The frames that tell what was not told yet; undefined between them, to give the event loop back. */
  *frames(slices: Iterable<Readonly<{ slice: Slice }>>): Iterable<FrameOf<'status'> | undefined> {
    let changed: SliceFreshness[] = [];
    let looked = 0;
    for (const { slice } of slices) {
      const freshness = this.#changeOf(slice);
      if (freshness !== undefined) changed.push(freshness);
      looked += 1;
      if (looked % slicesPerTurn !== 0) continue;
      yield changed.length === 0 ? undefined : { kind: 'status', freshness: changed };
      changed = [];
    }
    if (changed.length > 0) yield { kind: 'status', freshness: changed };
    if (this.#isFirst) yield { kind: 'status', freshness: [] };
    this.#isFirst = false;
  }

  #changeOf(slice: Slice): SliceFreshness | undefined {
    const { isSynced, freshnessOf } = this.#parts;
    const { connected, lagMs } = freshnessOf(slice);
    const freshness = { slice, connected, synced: isSynced(slice), lagMs: Math.floor(lagMs / lagStepMs) * lagStepMs };
    const text = `${freshness.connected} ${freshness.synced} ${freshness.lagMs}`;
    const name = formatSlice(slice);
    if (this.#told.get(name) === text) return undefined;
    this.#told.set(name, text);
    return freshness;
  }
}
