/**
 * When edits take effect: the first at once; those that follow within a second together, a second after the last of them, or ten seconds after
 * the first of them if there is no end to them. So a tenant who edits without pause costs the shard a reading of his logical cluster every ten seconds.
 *
 *   edits      x  x x x                    x
 *   effects    x          x                x
 *              └ 1 s quiet ┘
 */
import type { Clock } from '../domain/ports.js';

const quietMs = 1_000;
const waitMsMax = 10_000;

/** `sinceMs`: when the first was made of those that have no effect yet. */
type Edits = { sinceMs: number | undefined; readonly apply: () => void; cancel: () => void };

export class EditPace {
  readonly #clock: Clock;
  readonly #edits = new Map<string, Edits>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What `name` says was edited; `apply`: the same function each time, which looks at what there is then. */
  edited(name: string, apply: () => void): void {
    const known = this.#edits.get(name);
    if (known === undefined) return this.#apply(name, { sinceMs: undefined, apply, cancel: () => {} });
    const nowMs = this.#clock.now();
    known.sinceMs ??= nowMs;
    this.#wait(name, known, Math.min(quietMs, known.sinceMs + waitMsMax - nowMs));
  }

  /** Edits that wait have no effect any more. */
  close(): void {
    for (const { cancel } of this.#edits.values()) cancel();
    this.#edits.clear();
  }

  #apply(name: string, edits: Edits): void {
    edits.sinceMs = undefined;
    this.#edits.set(name, edits);
    this.#wait(name, edits, quietMs);
    edits.apply();
  }

  #wait(name: string, edits: Edits, ms: number): void {
    edits.cancel();
    edits.cancel = this.#clock.after(Math.max(0, ms), () => {
      if (edits.sinceMs !== undefined) this.#apply(name, edits);
      else this.#edits.delete(name);
    });
  }
}
