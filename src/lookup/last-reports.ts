/**
 * The last freshness report for each question that was asked of a cache lately. Bound: `questionsKeptMax` questions; the one that nobody has asked for
 * longest makes room for a new one, and costs a report when it is asked again.
 */
import type { Clock } from '../domain/ports.js';
import type { FreshnessReport } from './freshness-report.js';
import { LastReport } from './last-report.js';

const questionsKeptMax = 1_000;

export class LastReports {
  readonly #clock: Clock;
  readonly #ask: (question: string) => Promise<FreshnessReport>;
  readonly #reports = new Map<string, LastReport>();

  /** `ask` must end by itself. */
  constructor({ clock, ask }: { clock: Clock; ask: (question: string) => Promise<FreshnessReport> }) {
    this.#clock = clock;
    this.#ask = ask;
  }

  to(question: string): LastReport {
    const report = this.#reports.get(question) ?? new LastReport({ clock: this.#clock, ask: () => this.#ask(question) });
    this.#reports.delete(question);
    const [oldest] = this.#reports.keys();
    if (oldest !== undefined && this.#reports.size >= questionsKeptMax) this.#reports.delete(oldest);
    this.#reports.set(question, report);
    return report;
  }
}
