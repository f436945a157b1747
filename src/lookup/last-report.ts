/**
 * The last answer to one question about freshness, asked for again when it has become too old. One request at a time: a caller that comes while it is
 * under way waits for the same answer, with its own signal. Bound: one report.
 */
import type { Clock } from '../domain/ports.js';
import { untilAborted } from '../domain/until-aborted.js';
import type { FreshnessReport } from './freshness-report.js';

/** `askedMs` is when it was asked for: the cache answered then or later. */
export type ReceivedReport = Readonly<{ report: FreshnessReport; askedMs: number }>;

export function ageOf({ askedMs }: ReceivedReport, clock: Pick<Clock, 'now'>): number {
  return Math.max(0, clock.now() - askedMs);
}

export class LastReport {
  readonly #clock: Clock;
  readonly #ask: () => Promise<FreshnessReport>;
  #received: ReceivedReport | undefined;
  #asking: Promise<ReceivedReport> | undefined;

  /** `ask` must end by itself. */
  constructor({ clock, ask }: { clock: Clock; ask: () => Promise<FreshnessReport> }) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** One no older than that, if it is here already. */
  youngerThan(ageMaxMs: number): ReceivedReport | undefined {
    return this.#received !== undefined && this.#isWithin(this.#received, ageMaxMs) ? this.#received : undefined;
  }

  /** Whether the last one listed only some of the shards. */
  get leavesShardsOut(): boolean {
    return this.#received !== undefined && this.#received.report.shardsLeftOut > 0;
  }

  /** One no older than that. Throws what `ask` throws, or the reason of `signal` when that is aborted. */
  async within(ageMaxMs: number, signal?: AbortSignal): Promise<ReceivedReport> {
    signal?.throwIfAborted();
    return this.youngerThan(ageMaxMs) ?? this.#renewed(signal);
  }

  async #renewed(signal: AbortSignal | undefined): Promise<ReceivedReport> {
    this.#asking ??= this.#askAnew().finally(() => (this.#asking = undefined));
    return signal === undefined ? this.#asking : untilAborted(this.#asking, signal);
  }

  /** A clock that was set back must not make anything fresh. */
  #isWithin(received: ReceivedReport, ageMaxMs: number): boolean {
    return received.askedMs <= this.#clock.now() && ageOf(received, this.#clock) <= ageMaxMs;
  }

  async #askAnew(): Promise<ReceivedReport> {
    const askedMs = this.#clock.now();
    const received = { report: await this.#ask(), askedMs };
    this.#received = received;
    return received;
  }
}
