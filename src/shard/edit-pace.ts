/**
 * When edits take effect: at once, if the last effect is a second ago; otherwise together, once there was none for a second, or ten seconds after the
 * first of them. Two effects in ten seconds at most: one who edits without pause costs the shard a reading of his logical cluster every
 * five seconds, and it has the time to come to its end.
 *
 *   edits      x  x x x                    x     x   x
 *   effects    x          x                x                 x
 *              └─ 1 s quiet ┘              └── 10 s since the one before the last ──┘
 */
import type { Clock } from '../domain/ports.js';

const quietMs = 1_000;
const waitMsMax = 10_000;

/** `sinceMs`: when the first edit was made that has no effect yet. `formerMs`, `lastMs`: of the last two effects. */
type Edits = { sinceMs: number | undefined; formerMs: number; lastMs: number; readonly apply: () => void; cancel: () => void };

export class EditPace {
  readonly #clock: Clock;
  readonly #edits = new Map<string, Edits>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What `name` says was edited; `apply`: the same function each time, which looks at what there is then. */
  edited(name: string, apply: () => void): void {
    const nowMs = this.#clock.now();
    const edits = this.#edits.get(name) ?? { sinceMs: undefined, formerMs: -Infinity, lastMs: -Infinity, apply, cancel: () => {} };
    this.#edits.set(name, edits);
    const isQuiet = edits.sinceMs === undefined && nowMs - edits.lastMs >= quietMs;
    edits.sinceMs ??= nowMs;
    const dueMs = isQuiet ? nowMs : Math.min(nowMs + quietMs, edits.sinceMs + waitMsMax);
    this.#wait(name, edits, Math.max(dueMs, edits.formerMs + waitMsMax) - nowMs);
  }

  /** Edits that wait have no effect any more. */
  close(): void {
    for (const { cancel } of this.#edits.values()) cancel();
    this.#edits.clear();
  }

  #wait(name: string, edits: Edits, ms: number): void {
    edits.cancel();
    if (ms <= 0) this.#next(name, edits);
    else edits.cancel = this.#clock.after(ms, () => this.#next(name, edits));
  }

  /** What waits takes effect; after a while without, the name is forgotten. */
  #next(name: string, edits: Edits): void {
    if (edits.sinceMs === undefined) return void this.#edits.delete(name);
    [edits.sinceMs, edits.formerMs, edits.lastMs] = [undefined, edits.lastMs, this.#clock.now()];
    this.#wait(name, edits, waitMsMax);
    edits.apply();
  }
}
