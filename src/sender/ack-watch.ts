/**
 * Detects a peer that answers pings but acknowledges nothing; otherwise the sender would wait
 * forever. The owner calls `isOverdue` regularly. The timeout runs while mutations are
 * unacknowledged and no ack arrives.
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

  isOverdue({ acknowledged, unacknowledged }: Pick<Window<unknown>, 'acknowledged' | 'unacknowledged'>): boolean {
    const nowMs = this.#clock.now();
    if (acknowledged !== this.#acknowledged || unacknowledged.mutations === 0) this.#sinceMs = nowMs;
    this.#acknowledged = acknowledged;
    return nowMs - this.#sinceMs >= this.#waitMaxMs;
  }
}
