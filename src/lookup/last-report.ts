/**
 * The last answer to one question about freshness, asked for again when it has become too old. One request at a time: whoever comes while one is under way
 * waits for its answer, or for that of the next one if it was asked for too long ago, with a signal of their own. Bound: one report.
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
  readonly #request: () => Promise<FreshnessReport>;
  #received: ReceivedReport | undefined;
  #asking: Readonly<{ askedMs: number; answer: Promise<ReceivedReport> }> | undefined;
  /** The one that follows it. */
  #next: Promise<ReceivedReport> | undefined;

  /** `ask` must end by itself. */
  constructor({ clock, ask }: { clock: Clock; ask: () => Promise<FreshnessReport> }) {
    this.#clock = clock;
    this.#request = ask;
  }

  #youngerThan(ageMaxMs: number): ReceivedReport | undefined {
    return this.#received !== undefined && this.#isYounger(this.#received, ageMaxMs) ? this.#received : undefined;
  }

  /** Whether the last one listed only some of the shards. */
  get leavesShardsOut(): boolean {
    return this.#received !== undefined && this.#received.report.shardsLeftOut > 0;
  }

  /** One younger than that, for 0 one that is asked for now. Throws what `ask` throws, or the reason of `signal` when that is aborted. */
  async within(ageMaxMs: number, signal?: AbortSignal): Promise<ReceivedReport> {
    signal?.throwIfAborted();
    const received = this.#youngerThan(ageMaxMs);
    if (received !== undefined) return received;
    const answer = this.#asked(ageMaxMs);
    return signal === undefined ? answer : untilAborted(answer, signal);
  }

  #asked(ageMaxMs: number): Promise<ReceivedReport> {
    const asking = this.#asking;
    if (asking !== undefined && this.#isYounger(asking, ageMaxMs)) return asking.answer;
    if (this.#next !== undefined) return this.#next;
    if (asking === undefined) return this.#ask();
    const again = (): Promise<ReceivedReport> => {
      this.#next = undefined;
      return this.#ask();
    };
    return (this.#next = asking.answer.then(again, again));
  }

  /** A clock that was set back must not make anything fresh. */
  #isYounger({ askedMs }: Readonly<{ askedMs: number }>, ageMaxMs: number): boolean {
    const ageMs = this.#clock.now() - askedMs;
    return ageMs >= 0 && ageMs < ageMaxMs;
  }

  #ask(): Promise<ReceivedReport> {
    const askedMs = this.#clock.now();
    const answer = this.#request()
      .then((report) => (this.#received = { report, askedMs }))
      .finally(() => (this.#asking = undefined));
    this.#asking = { askedMs, answer };
    return answer;
  }
}
