/**
 * The last freshness report of a cache, asked for anew when it has become too old. One question at a time: who comes while it is under
 * way waits for the same answer, with a signal of their own. Bound: one report.
 */
import { deferred } from '../domain/deferred.js';
import type { Clock } from '../domain/ports.js';
import type { FreshnessReport } from './freshness-report.js';

/** `askedMs` is when it was asked for: the cache answered then or later. */
export type ToldReport = Readonly<{ report: FreshnessReport; askedMs: number }>;

export class LastReport {
  readonly #clock: Clock;
  readonly #ask: () => Promise<FreshnessReport>;
  #told: ToldReport | undefined;
  #asking: Promise<ToldReport> | undefined;

  /** `ask` must end by itself. */
  constructor({ clock, ask }: { clock: Clock; ask: () => Promise<FreshnessReport> }) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** One no older than that. Throws what `ask` throws, or the reason of `signal` when that is aborted. */
  async within(ageMaxMs: number, signal?: AbortSignal): Promise<ToldReport> {
    signal?.throwIfAborted();
    return this.#told !== undefined && this.#isWithin(this.#told, ageMaxMs) ? this.#told : this.#renewed(signal);
  }

  /** One that was told later than that one. Throws as `within` does. */
  async after(told: ToldReport, signal?: AbortSignal): Promise<ToldReport> {
    signal?.throwIfAborted();
    return this.#told !== undefined && this.#told !== told ? this.#told : this.#renewed(signal);
  }

  async #renewed(signal: AbortSignal | undefined): Promise<ToldReport> {
    this.#asking ??= this.#askAnew().finally(() => (this.#asking = undefined));
    return unlessAborted(this.#asking, signal);
  }

  ageOf({ askedMs }: ToldReport): number {
    return Math.max(0, this.#clock.now() - askedMs);
  }

  /** A clock that was set back makes nothing fresh. */
  #isWithin(told: ToldReport, ageMaxMs: number): boolean {
    return told.askedMs <= this.#clock.now() && this.ageOf(told) <= ageMaxMs;
  }

  async #askAnew(): Promise<ToldReport> {
    const askedMs = this.#clock.now();
    const told = { report: await this.#ask(), askedMs };
    this.#told = told;
    return told;
  }
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const { promise: aborted, reject } = deferred<never>();
  const end = (): void => reject(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}
