/**
 * How long the next run of an exec plugin waits. All readers of a shard request credentials at
 * once, and retry soon. So one pace limits the plugin for all readers.
 *
 *  the run failed, or the shard soon refused the credential     doubling waits up to `waitMsMax`
 *  the credential has lasted, and was refused or has expired    no wait; failures are reset
 *  the plugin has just issued an expired credential             `waitMsMin`
 */
import type { Clock } from '../../domain/ports.js';

const waitMsMin = 1_000;
const waitMsMax = 30_000;
/** If the shard accepted a credential for this long, its refusal is not a failure of the plugin. */
const lastedMs = 60_000;

export class PluginPace {
  readonly #clock: Clock;
  #failures = 0;
  #nextMs = -Infinity;
  #issuedMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** 0 if the plugin may run at once. */
  waitMs(): number {
    return Math.max(0, this.#nextMs - this.#clock.now());
  }

  issued(): void {
    this.#settle();
    this.#issuedMs = this.#clock.now();
    this.#nextMs = this.#issuedMs + waitMsMin;
  }

  /** Called when the shard refuses the last credential. */
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

  /** Whether the last credential has lasted; if so, resets the failures. */
  #settle(): boolean {
    const hasLasted = this.#issuedMs !== undefined && this.#clock.now() - this.#issuedMs >= lastedMs;
    if (hasLasted) this.#failures = 0;
    this.#issuedMs = undefined;
    return hasLasted;
  }
}
