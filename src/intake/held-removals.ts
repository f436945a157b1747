/**
 * Removals that do not follow from deletions: a policy lets less of a slice cross, or its pusher no longer names it.
 * One that would remove much may be a mistake, so it waits until an operator confirms it, or for a grace time.
 *
 *   wanted ── little ──▶ made
 *      └───── much ────▶ held ── confirmed, or graceMs ──▶ released ──▶ made, and forgotten
 *                         └── not wanted any more, or another one ──▶ forgotten
 *
 * H1 Nothing of a slice is removed for a reason that is held. H2 What was released is that removal alone: another reason waits again.
 * Holds are in memory: after a restart whoever wants the removal asks again, and the grace time starts over.
 * Bound: one for each slice.
 */
import type { Log } from '../diagnostics/log.js';
import type { Clock, Removals, Subscription } from '../domain/ports.js';
import { formatResource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';

/** `reason`: distinguishes removals of one slice. `removes`: so many of its `objects`. */
export type WantedRemoval = Readonly<{ slice: Slice; reason: string; removes: number; objects: number }>;

export type HeldRemoval = WantedRemoval & Readonly<{ sinceMs: number }>;

/** At least `removesMin` objects and more than `percentMax` of the slice are much. */
export type HoldLimits = Readonly<{ percentMax: number; removesMin: number; graceMs: number }>;

type Entry = { readonly removal: HeldRemoval; readonly cancel: () => void; isReleased: boolean };

type Listener = (slice: Slice) => void;

export class HeldRemovals implements Removals {
  readonly #parts: Readonly<{ clock: Clock; log: Pick<Log, 'info' | 'warn'> }>;
  readonly #limits: HoldLimits;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<Listener>();

  constructor(parts: Readonly<{ clock: Clock; log: Pick<Log, 'info' | 'warn'> }>, limits: HoldLimits) {
    this.#parts = parts;
    this.#limits = limits;
  }

  /** Fewer than these are never much. */
  get removesMin(): number {
    return this.#limits.removesMin;
  }

  /** Whether the removal has to wait. If not, the caller makes it, and calls `forget` once it is made. */
  holds(wanted: WantedRemoval): boolean {
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

  isHeld(slice: Slice): boolean {
    return this.held(slice) !== undefined;
  }

  held(slice: Slice): HeldRemoval | undefined {
    const known = this.#entries.size === 0 ? undefined : this.#entries.get(formatSlice(slice));
    return known?.isReleased === false ? known.removal : undefined;
  }

  get all(): readonly HeldRemoval[] {
    return [...this.#entries.values()].flatMap(({ removal, isReleased }) => (isReleased ? [] : [removal]));
  }

  get graceMs(): number {
    return this.#limits.graceMs;
  }

  /** No removal of the slice is wanted any more, or it was made. */
  forget(slice: Slice): void {
    if (this.#entries.size === 0) return;
    const name = formatSlice(slice);
    this.#entries.get(name)?.cancel();
    this.#entries.delete(name);
  }

  /** The released removal has been made: the next one is held again. */
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

  /** Calls with slices whose removal may be made now: whoever wants it asks again. */
  follow(listener: Listener): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
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
    for (const listener of this.#listeners) listener(entry.removal.slice);
  }
}
