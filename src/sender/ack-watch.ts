/**
 * Notices a peer that is there and acknowledges nothing: it answers pings, and its sender would wait for ever. The owner calls it now and then;
 * the wait goes on as long as something is under way and nothing of it is acknowledged.
 */
import type { Clock } from '../domain/ports.js';
import type { Window } from './window.js';

export class AckWatch {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #waitMaxMs: number;
  #acknowledged = 0;
  #sinceMs: number;

  constructor(clock: Pick<Clock, 'now'>, { ackTimeoutMs }: Readonly<{ ackTimeoutMs: number }>) {
    this.#clock = clock;
    this.#waitMaxMs = ackTimeoutMs;
    this.#sinceMs = clock.now();
  }

  /** Whether something is under way and nothing was acknowledged for too long. */
  isOverdue({ acknowledged, unacknowledged }: Pick<Window<unknown>, 'acknowledged' | 'unacknowledged'>): boolean {
    const nowMs = this.#clock.now();
    if (acknowledged !== this.#acknowledged || unacknowledged.mutations === 0) this.#sinceMs = nowMs;
    this.#acknowledged = acknowledged;
    return nowMs - this.#sinceMs >= this.#waitMaxMs;
  }
}
