/**
 * Decides when edits take effect: at once, if the last effect was a second ago or more. Otherwise
 * they take effect together, after a second without an edit, or ten seconds after the first of
 * them.
 *
 * There are at most two effects in ten seconds. So continuous edits cost the shard one read of the
 * logical cluster every five seconds, which is enough time to complete the read.
 *
 *  edits      x  x x x                    x     x   x
 *  effects    x          x                x                 x
 *             └─ 1 s quiet ┘              └── 10 s since the effect before the last ──┘
 */
import type { Clock } from '../domain/ports.js';

const quietMs = 1_000;
const waitMsMax = 10_000;

/**
 * `sinceMs`: the time of the first edit without an effect. `formerMs`, `lastMs`: the times of the
 * last two effects.
 */
type Edits = { sinceMs: number | undefined; formerMs: number; lastMs: number; readonly apply: () => void; cancel: () => void };

export class EditPace {
  readonly #clock: Clock;
  readonly #edits = new Map<string, Edits>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Records an edit of `name`. `apply` must be the same function each time, and reads the state
   * when it is called.
   */
  edited(name: string, apply: () => void): void {
    const nowMs = this.#clock.now();
    const edits = this.#edits.get(name) ?? { sinceMs: undefined, formerMs: -Infinity, lastMs: -Infinity, apply, cancel: () => {} };
    this.#edits.set(name, edits);
    const isQuiet = edits.sinceMs === undefined && nowMs - edits.lastMs >= quietMs;
    edits.sinceMs ??= nowMs;
    const dueMs = isQuiet ? nowMs : Math.min(nowMs + quietMs, edits.sinceMs + waitMsMax);
    this.#wait(name, edits, Math.max(dueMs, edits.formerMs + waitMsMax) - nowMs);
  }

  /** Drops edits that wait. */
  close(): void {
    for (const { cancel } of this.#edits.values()) cancel();
    this.#edits.clear();
  }

  #wait(name: string, edits: Edits, ms: number): void {
    edits.cancel();
    if (ms <= 0) this.#next(name, edits);
    else edits.cancel = this.#clock.after(ms, () => this.#next(name, edits));
  }

  /** Applies the waiting edits; forgets the name after `waitMsMax` without edits. */
  #next(name: string, edits: Edits): void {
    if (edits.sinceMs === undefined) return void this.#edits.delete(name);
    [edits.sinceMs, edits.formerMs, edits.lastMs] = [undefined, edits.lastMs, this.#clock.now()];
    this.#wait(name, edits, waitMsMax);
    edits.apply();
  }
}
