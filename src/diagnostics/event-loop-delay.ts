/**
 * How late the event loop runs. If the loop blocks for 15 s, client-go closes its connection and
 * with it every watch.
 *
 *   ├── window ──┼── window ──┼── window ──▶   Readers get the last whole window.
 *                └ p99 of the one before
 *
 * Reading does not clear the histogram, because that would falsify the values for a second scraper.
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
  #maxMs = 0;
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

  /** The latest timer of the last whole window and of the current one. */
  get maxMs(): number {
    return Math.max(this.#maxMs, this.#measured(this.#histogram.max));
  }

  close(): void {
    this.#cancel();
    this.#histogram.disable();
  }

  #turn(): void {
    this.#p99Ms = this.#measured(this.#histogram.percentile(99));
    this.#maxMs = this.#measured(this.#histogram.max);
    this.#histogram.reset();
    this.#cancel = this.#clock.after(this.#options.windowMs, () => this.#turn());
  }

  /** Node measures from timer to timer, so a loop that is never late reads as the resolution. */
  #measured(nanoseconds: number): number {
    const ms = this.#histogram.count === 0 ? 0 : nanoseconds / nanosecondsPerMs;
    return Math.max(0, ms - this.#options.resolutionMs);
  }
}
