/**
 * How late the event loop runs. R22: a loop that stands for 15 s loses every watch, so this number comes first.
 *
 *   ├── window ──┼── window ──┼── window ──▶     What is read is the last whole window, whoever reads and how often:
 *                └ p99 of the one before         a histogram cleared by its reader would cheat the second scraper.
 */
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import type { Clock } from '../domain/ports.js';

export type EventLoopDelayOptions = Readonly<{ resolutionMs: number; windowMs: number }>;

const nanosecondsPerMs = 1e6;

export class EventLoopDelay {
  readonly #histogram: IntervalHistogram;
  readonly #clock: Clock;
  readonly #options: EventLoopDelayOptions;
  #p99Ms = 0;
  #cancel: () => void;

  constructor({ clock }: { clock: Clock }, options: EventLoopDelayOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#histogram = monitorEventLoopDelay({ resolution: options.resolutionMs });
    this.#histogram.enable();
    this.#cancel = clock.after(options.windowMs, () => this.#turn());
  }

  /** 99 of 100 timers of the last whole window fired no later than this. */
  get p99Ms(): number {
    return this.#p99Ms;
  }

  close(): void {
    this.#cancel();
    this.#histogram.disable();
  }

  /** Node measures from timer to timer: a loop that is never late reads as the resolution. */
  #turn(): void {
    const measuredMs = this.#histogram.count === 0 ? 0 : this.#histogram.percentile(99) / nanosecondsPerMs;
    this.#p99Ms = Math.max(0, measuredMs - this.#options.resolutionMs);
    this.#histogram.reset();
    this.#cancel = this.#clock.after(this.#options.windowMs, () => this.#turn());
  }
}
