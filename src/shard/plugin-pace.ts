/**
 * How long the next run of an exec plugin has to wait. All readers of a shard ask for credentials at once and try again soon, so it is
 * the plugin that needs a pace, not each of them.
 *
 *   the run failed, or the shard refused what it issued soon after     as many seconds as doubling makes, `waitMsMax` at most
 *   what it issued has lasted, and is refused or has expired           no wait; failures are counted anew
 *   it has just issued something that has expired already              `waitMsMin`
 */
import type { Clock } from '../domain/ports.js';

const waitMsMin = 1_000;
const waitMsMax = 30_000;
/** What the shard has accepted for so long was no failure of the plugin. */
const lastedMs = 60_000;

export class PluginPace {
  readonly #clock: Clock;
  #failures = 0;
  #nextMs = -Infinity;
  #issuedMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** 0 when it may run now. */
  waitMs(): number {
    return Math.max(0, this.#nextMs - this.#clock.now());
  }

  issued(): void {
    this.#settle();
    this.#issuedMs = this.#clock.now();
    this.#nextMs = this.#issuedMs + waitMsMin;
  }

  /** The shard does not accept what was issued last. */
  refused(): void {
    if (!this.#settle()) this.#fail();
  }

  failed(): void {
    this.#settle();
    this.#fail();
  }

  #fail(): void {
    this.#failures += 1;
    this.#nextMs = this.#clock.now() + Math.min(waitMsMax, waitMsMin * 2 ** (this.#failures - 1));
  }

  /** Whether what was issued last has lasted. */
  #settle(): boolean {
    const hasLasted = this.#issuedMs !== undefined && this.#clock.now() - this.#issuedMs >= lastedMs;
    if (hasLasted) this.#failures = 0;
    this.#issuedMs = undefined;
    return hasLasted;
  }
}
