/**
 * The time of one process. When the process dies, its timers never fire and its awaited results
 * never arrive. So its code stops at once, as in a power failure. While the process is frozen,
 * tasks that fall due wait.
 *
 * Its clock is wrong by `skewMs`, because no two clocks agree.
 */
import { deferred } from '../../src/domain/base/promises.js';
import type { Clock } from '../../src/domain/ports.js';
import type { VirtualTime } from './virtual-time.js';

export class ProcessLife implements Clock {
  readonly #time: VirtualTime;
  readonly #skewMs: number;
  /** By how much the wall clock has been set since; the monotonic `now` never steps. */
  #steppedMs = 0;
  #state: 'running' | 'frozen' | 'ended' = 'running';
  /** Tasks that fell due while the process was frozen, in order. */
  readonly #held = new Set<() => void>();

  constructor(time: VirtualTime, { skewMs = 0 }: Readonly<{ skewMs?: number }> = {}) {
    this.#time = time;
    this.#skewMs = skewMs;
  }

  get ended(): boolean {
    return this.#state === 'ended';
  }

  wallMs(): number {
    return this.now() + this.#steppedMs;
  }

  /** Sets the wall clock of the machine. */
  stepWall(byMs: number): void {
    this.#steppedMs += byMs;
  }

  now(): number {
    return this.#time.now() + this.#skewMs;
  }

  after(delayMs: number, run: () => void): () => void {
    // Each call gets a function of its own, because a caller may schedule the same `run` twice.
    const task = (): void => run();
    const cancel = this.#time.after(delayMs, () => this.#fall(task));
    return () => {
      cancel();
      this.#held.delete(task);
    };
  }

  /** Arrow functions, because callers pass these methods on without `this`. */
  readonly soon = (run: () => void): void => this.#time.soon(() => this.#fall(() => run()));

  readonly turn = (): Promise<void> => {
    const { promise, resolve } = deferred<void>();
    this.soon(resolve);
    return promise;
  };

  freeze(): void {
    if (this.#state === 'running') this.#state = 'frozen';
  }

  thaw(): void {
    if (this.#state !== 'frozen') return;
    this.#state = 'running';
    for (const task of this.#held) this.#time.soon(() => this.#wake(task));
  }

  end(): void {
    this.#state = 'ended';
    this.#held.clear();
  }

  #fall(task: () => void): void {
    if (this.#state === 'running') task();
    if (this.#state === 'frozen') this.#held.add(task);
  }

  /** Skips a task that an earlier one has cancelled, and stops if the process is frozen again. */
  #wake(task: () => void): void {
    if (this.#state === 'running' && this.#held.delete(task)) task();
  }
}
