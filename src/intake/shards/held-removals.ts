/**
 * Removals that no deletion causes: a policy lets less of a slice cross, or the pusher stops naming
 * the slice. A removal of many objects may be a mistake. It waits until an operator confirms it, or
 * until a grace time is over.
 *
 *   wanted ── few objects ──▶ made
 *      └───── many ─────────▶ held ── confirmed, or graceMs ──▶ released ──▶ made, and forgotten
 *                              └── not wanted any more, or another reason ──▶ forgotten
 *
 * H1 While a removal is held, nothing of the slice is removed for that reason.
 * H2 A release covers that removal alone: a removal for another reason waits again.
 *
 * Holds are in memory. After a restart, the caller requests the removal again, and its grace time
 * starts over.
 *
 * Bound: one hold for each slice.
 */
import type { Log } from '../../diagnostics/log.js';
import { Listeners } from '../../domain/base/listeners.js';
import type { Clock, Removals, Subscription } from '../../domain/ports.js';
import { formatResource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, type Slice } from '../../domain/slice.js';

/**
 * `reason`: distinguishes removals of one slice. `removes`: how many of the slice's `objects` would
 * be removed.
 */
export type WantedRemoval = Readonly<{ slice: Slice; reason: string; removes: number; objects: number }>;

export type HeldRemoval = WantedRemoval & Readonly<{ sinceMs: number }>;

/**
 * A removal is held if it removes at least `removesMin` objects and more than `percentMax` of the
 * slice.
 */
export type HeldRemovalLimits = Readonly<{ percentMax: number; removesMin: number; graceMs: number }>;

type Entry = { readonly removal: HeldRemoval; readonly cancel: () => void; isReleased: boolean };

export class HeldRemovals implements Removals {
  readonly #parts: Readonly<{ clock: Clock; log: Pick<Log, 'info' | 'warn'> }>;
  readonly #limits: HeldRemovalLimits;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Listeners<Slice>();

  constructor(parts: Readonly<{ clock: Clock; log: Pick<Log, 'info' | 'warn'> }>, limits: HeldRemovalLimits) {
    this.#parts = parts;
    this.#limits = limits;
  }

  /** A removal of fewer objects is never held. */
  get removesMin(): number {
    return this.#limits.removesMin;
  }

  /** Whether the removal must wait. If not, the caller makes it and then calls `forget`. */
  mustWait(wanted: WantedRemoval): boolean {
    const { slice, reason, removes, objects } = wanted;
    const name = formatSlice(slice);
    const known = this.#entries.get(name);
    const isMuch = removes >= this.#limits.removesMin && removes * 100 > objects * this.#limits.percentMax;
    if (isMuch && known?.removal.reason === reason) {
      if (!known.isReleased) this.#entries.set(name, { ...known, removal: { ...known.removal, removes, objects } });
      return !known.isReleased;
    }
    this.forget(slice);
    if (!isMuch) return false;
    const { clock, log } = this.#parts;
    const cancel = clock.after(this.#limits.graceMs, () => this.#release(name, 'its grace time is over'));
    this.#entries.set(name, { removal: { ...wanted, sinceMs: clock.now() }, cancel, isReleased: false });
    log.warn('removal.held', { slice: name, removes, objects, graceMs: this.#limits.graceMs });
    return true;
  }

  waiting(slice: Slice): HeldRemoval | undefined {
    const known = this.#entries.size === 0 ? undefined : this.#entries.get(formatSlice(slice));
    return known?.isReleased === false ? known.removal : undefined;
  }

  get all(): readonly HeldRemoval[] {
    return [...this.#entries.values()].flatMap(({ removal, isReleased }) => (isReleased ? [] : [removal]));
  }

  get graceMs(): number {
    return this.#limits.graceMs;
  }

  /** The removal was made, or its reason is gone. */
  forget(slice: Slice): void {
    if (this.#entries.size === 0) return;
    const name = formatSlice(slice);
    this.#entries.get(name)?.cancel();
    this.#entries.delete(name);
  }

  /** The released removal was made. The next removal of the slice is held again. */
  made(slice: Slice): void {
    if (this.#entries.get(formatSlice(slice))?.isReleased === true) this.forget(slice);
  }

  confirm(shard: ShardName, type: string | undefined): ReturnType<Removals['confirm']> {
    return this.all.flatMap(({ slice, removes }) => {
      const typeHeld = formatResource(slice.resource).replace(/:$/, '');
      if (slice.shard !== shard || (type !== undefined && type !== typeHeld)) return [];
      this.#release(formatSlice(slice), 'it was confirmed');
      return [{ type: typeHeld, removes }];
    });
  }

  /**
   * Calls `listener` with each slice whose removal was released. That removal's caller then
   * requests it again.
   */
  follow(listener: (slice: Slice) => void): Subscription {
    return this.#listeners.subscribe(listener);
  }

  close(): void {
    for (const { cancel } of this.#entries.values()) cancel();
    this.#entries.clear();
  }

  #release(name: string, why: string): void {
    const entry = this.#entries.get(name);
    if (entry === undefined || entry.isReleased) return;
    entry.cancel();
    entry.isReleased = true;
    this.#parts.log.info('removal.released', { slice: name, why });
    this.#listeners.notify(entry.removal.slice);
  }
}
