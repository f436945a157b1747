/**
 * Activity of the last minutes for the console's charts: rates per second, oldest first, from
 * counters that only rise. The server keeps them, so that a newly opened page shows them at once.
 * Bound: samplesMax of each rate.
 */
import type { Clock } from '../domain/ports.js';
import { activityNames, type Activity, type ActivityName } from './page/overview.js';

/** Sums since the process started. */
export type Totals = Readonly<Record<ActivityName, number>>;

export type ActivityOptions = Readonly<{ intervalMs: number; samplesMax: number }>;

const msPerSecond = 1_000;

export class ActivityLog {
  readonly #parts: Readonly<{ clock: Clock; totals: () => Totals }>;
  readonly #options: ActivityOptions;
  readonly #rates: Readonly<Record<ActivityName, number>>[] = [];
  #last: Totals;
  #lastMs: number;
  #cancel: () => void;

  constructor(parts: Readonly<{ clock: Clock; totals: () => Totals }>, options: ActivityOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#last = parts.totals();
    this.#lastMs = parts.clock.now();
    this.#cancel = parts.clock.after(options.intervalMs, () => this.#sample());
  }

  read(): Activity {
    const perSecond: Record<string, readonly number[]> = Object.fromEntries(
      activityNames.map((name) => [name, this.#rates.map((rates) => rates[name])]),
    );
    return { intervalMs: this.#options.intervalMs, perSecond: perSecond as Record<ActivityName, readonly number[]> };
  }

  close(): void {
    this.#cancel();
  }

  #sample(): void {
    const { clock, totals } = this.#parts;
    const [now, nowMs] = [totals(), clock.now()];
    const seconds = Math.max(1, nowMs - this.#lastMs) / msPerSecond;
    const rates = activityNames.map((name): [ActivityName, number] => [name, round((now[name] - this.#last[name]) / seconds)]);
    this.#rates.push(Object.fromEntries(rates) as Record<ActivityName, number>);
    if (this.#rates.length > this.#options.samplesMax) this.#rates.shift();
    this.#last = now;
    this.#lastMs = nowMs;
    this.#cancel = clock.after(this.#options.intervalMs, () => this.#sample());
  }
}

function round(rate: number): number {
  return Math.round(rate * 10) / 10;
}
