/**
 * The latest freshness report for each question to a cache, finished or under way. Callers that
 * accept a report's age share the report, each with its own signal.
 *
 * Bound: the `questionsKeptMax` questions that were asked most recently; any other needs a new
 * report.
 */
import type { Clock } from '../domain/ports.js';
import { untilAborted } from '../domain/base/promises.js';
import type { FreshnessReport } from './freshness-report.js';

/** `askedMs`: when the report was requested. The cache made it then or later. */
export type ReceivedReport = Readonly<{ report: FreshnessReport; askedMs: number }>;

type Asked = Readonly<{ askedMs: number; answer: Promise<ReceivedReport> }>;

const questionsKeptMax = 1_000;

export function ageOf({ askedMs }: ReceivedReport, clock: Pick<Clock, 'now'>): number {
  return Math.max(0, clock.now() - askedMs);
}

export class LastReports {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #ask: (question: string) => Promise<FreshnessReport>;
  /** The least recently asked question comes first. */
  readonly #asked = new Map<string, Asked>();
  /** Questions whose last report listed only some of the shards. */
  readonly #leftOut = new Set<string>();

  /** `ask` gets no signal, so it must end by itself. */
  constructor({ clock, ask }: { clock: Pick<Clock, 'now'>; ask: (question: string) => Promise<FreshnessReport> }) {
    this.#clock = clock;
    this.#ask = ask;
  }

  leavesShardsOut(question: string): boolean {
    return this.#leftOut.has(question);
  }

  /**
   * Returns a report that was requested less than `ageMaxMs` ago, or requests one. Throws what
   * `ask` throws, or the reason of an aborted `signal`.
   */
  async get(question: string, ageMaxMs: number, signal?: AbortSignal): Promise<ReceivedReport> {
    signal?.throwIfAborted();
    const last = this.#asked.get(question);
    const asked = last !== undefined && this.#isYounger(last, ageMaxMs) ? last : this.#asking(question);
    this.#asked.delete(question);
    this.#asked.set(question, asked);
    const [oldest] = this.#asked.keys();
    if (oldest !== undefined && this.#asked.size > questionsKeptMax) this.#forget(oldest);
    return signal === undefined ? asked.answer : untilAborted(asked.answer, signal);
  }

  #asking(question: string): Asked {
    const askedMs = this.#clock.now();
    const answer = this.#ask(question).then(
      (report) => {
        if (report.shardsLeftOut > 0 && this.#asked.has(question)) this.#leftOut.add(question);
        else this.#leftOut.delete(question);
        return { report, askedMs };
      },
      (error: unknown) => {
        if (this.#asked.get(question) === asked) this.#forget(question);
        throw error;
      },
    );
    const asked = { askedMs, answer };
    return asked;
  }

  #forget(question: string): void {
    this.#asked.delete(question);
    this.#leftOut.delete(question);
  }

  /** After the clock was set back, an old report must not count as fresh. */
  #isYounger({ askedMs }: Asked, ageMaxMs: number): boolean {
    const ageMs = this.#clock.now() - askedMs;
    return ageMs >= 0 && ageMs < ageMaxMs;
  }
}
